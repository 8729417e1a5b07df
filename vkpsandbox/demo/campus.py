"""The demo of a JupyterHub: a learner with a browser starts a lab, works in it and stops it; an instructor looks on."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from vkprovider.lablet import names
from vkpsandbox import Sandbox
from vkpsandbox.controlplane.portal import LEARNERS
from vkpsandbox.demo.chromium import Person, person, require_browser
from vkpsandbox.demo.door import MENU
from vkpsandbox.demo.hub import PASSWORD, SERVICE, HubPlan, plan_hub, require_hub, start_hub
from vkpsandbox.demo.labs import Labs
from vkpsandbox.demo.pods import names as pod_names
from vkpsandbox.demo.stage import DemoError, Narrator, Play, display

LEARNER: Final = "alice"
TEACHER: Final = "teacher"
CLASS: Final = "friday"
_SOON_S: Final = 30.0
_STORY_S: Final = 60.0
_GROUP: Final = f"system:serviceaccounts:{LEARNERS}"


def labs_in_a_hub() -> Play:
    """Return the demo of a hub.

    Raises:
        DemoError: There is no JupyterHub, or no browser.
    """
    require_hub()
    require_browser()
    plan = plan_hub()

    def perform(sandbox: Sandbox, _: Path, narrator: Narrator) -> None:
        day = Campus(sandbox, plan, narrator)
        day.prepare()
        with person(plan.url) as alice:
            day.start(alice)
            day.work(alice)
            with person(plan.url) as teacher:
                day.teach(teacher)
            day.stop(alice)

    def again(_sandbox: Sandbox, _: Path) -> str:
        return f"Log in as {LEARNER} or {TEACHER}, with the password {PASSWORD!r}, at\n\n  {plan.url}"

    title = "A JupyterHub in front: a learner with nothing but a browser has a lab."
    settings = {
        "portals": 1,
        "portal_env": plan.portal_settings(),
        "worker_args": [["--boot-seconds=1-2", "--patty-poll-seconds=0.5"]],
    }
    return Play(title, (), settings, perform, again)


class Campus:
    """The steps on a sandbox that is up."""

    def __init__(self, sandbox: Sandbox, plan: HubPlan, narrator: Narrator) -> None:
        """Do nothing yet."""
        self._sandbox, self._plan, self._tell = sandbox, plan, narrator
        self._labs = Labs(sandbox.workers)

    def prepare(self) -> None:
        """Put a lab on the menu, make a class, and start the hub."""
        self._tell.head(
            "2. Start a JupyterHub",
            "It and its proxy are stock; its spawner asks the portal, and the hub has no right in the cluster.",
        )
        self._tell.typed(f"kubectl apply -f {display(MENU)}")
        self._sandbox.kubectl("apply", "-f", str(MENU))
        self._tell.typed(f"kubectl create namespace {CLASS}")
        self._sandbox.kubectl("create", "namespace", CLASS)
        for name in (LEARNER, TEACHER):
            self._sandbox.kubectl("create", "serviceaccount", name, f"--namespace={LEARNERS}")
        bind = ("create", "rolebinding", f"--namespace={CLASS}")
        for role, subject in (
            ("vkprovider-class-learner", f"--group={_GROUP}"),
            ("vkprovider-instructor", f"--serviceaccount={LEARNERS}:{TEACHER}"),
        ):
            self._tell.typed(f"kubectl -n {CLASS} create rolebinding {role} --clusterrole={role} {subject}")
            self._sandbox.kubectl(*bind, role, f"--clusterrole={role}", subject)
        people = {name: self._token(name) for name in (LEARNER, TEACHER)}
        began = time.monotonic()
        start_hub(self._sandbox, self._plan, people, CLASS)
        self._tell.say(f"   JupyterHub at {self._plan.url} after {time.monotonic() - began:.1f} s")
        self._tell.wait(self._not_offered, _SOON_S, "the lab on the menu")

    def start(self, alice: Person) -> None:
        """Log in, pick a lab and a size, and watch it start."""
        self._tell.head("3. Log in, and pick a lab", f"{LEARNER} has a browser, and nothing else.")
        alice.remember(".progress-log-event")
        _log_in(alice, LEARNER, "/hub/spawn")
        form = alice.reads("Lab", "#spawn_form")
        self._tell.printed(_compact(form))
        alice.press("input[name=image_list]")
        alice.press("input[name=size]")
        nodes = pod_names(self._objects("nodes"))
        self._sandbox.kubectl("cordon", *nodes)  # a lab that is there before the progress page has nothing to tell
        alice.press("#spawn_form button[type=submit]")
        self._tell.head("4. Watch it start", "The progress page of the hub shows the portal's lines as they come.")
        self._story(alice, lambda: self._sandbox.kubectl("uncordon", *nodes))

    def work(self, alice: Person) -> None:
        """Look at the lab's page, behind the hub, and type on a device."""
        self._tell.head("5. Work on a device", "Who is logged in at the hub is logged in at the portal.")
        alice.await_path(f"{SERVICE}/labs/{LEARNER}")
        self._tell.printed(alice.reads("netlab", "#lab-state"))
        self._tell.printed(alice.reads("r1", ".devices"))
        alice.press(".devices a[data-console]")
        alice.within("#console-frame")
        alice.reads("You type", "#console-status")  # what is typed before is lost
        alice.fill(".xterm-helper-textarea", "\nshow version\n")
        screen = alice.reads("Cisco IOS", ".xterm-rows")
        self._tell.printed(_compact(screen))

    def teach(self, teacher: Person) -> None:
        """Look at the class, and give everybody more time."""
        self._tell.head("6. Look at the class", f"{TEACHER} has no lab, and instructs {CLASS} by one RoleBinding.")
        _log_in(teacher, TEACHER, f"{SERVICE}/classes/{CLASS}")
        self._tell.printed(teacher.reads(LEARNER, "#grid-rows"))
        before = self._end()
        teacher.press("input[name=scope][value=all]")
        teacher.press("#ask-extend summary")
        teacher.press("#ask-extend button")
        self._tell.printed(teacher.reads(LEARNER, "main"))
        after = self._end()
        if after <= before:
            raise DemoError(f"the lab of {LEARNER} ends {after}, as it did before it was extended ({before})")
        self._tell.say(f"   it ended {before}, and ends {after}")

    def stop(self, alice: Person) -> None:
        """Stop the lab at the hub; wait until nothing is left."""
        self._tell.head("7. Stop it", "At the hub, as any server there.")
        alice.open("/hub/home")
        alice.press_until("#stop", "#start[title]")
        took_s = self._tell.wait(self._left, _SOON_S, "no namespace and no lab")
        self._tell.say(f"   gone after {took_s:.1f} s, and every CML is empty")

    # ------------------------------------------------------------------------------------------ what they share
    def _story(self, alice: Person, begun: Callable[[], object]) -> None:
        """Tell each line of the progress page until the lab's page comes.

        Args:
            alice: Has asked for the lab.
            begun: Called when the page has its first line.

        Raises:
            DemoError: The lab's page does not come, or the progress page had no line of the lab's import.
        """
        told: list[str] = []
        until = time.monotonic() + _STORY_S
        there = False
        while not there:
            if time.monotonic() > until:
                raise DemoError(f"{alice.path} is shown after {_STORY_S:.0f} s; the hub told {told}")
            there = alice.path.startswith(SERVICE)  # all lines were on the page before it
            for line in alice.remembered[len(told) :]:
                if not told:
                    begun()
                told.append(line)
                self._tell.say(f"   {line}")
            time.sleep(0.1)
        if not any("imported" in line for line in told):
            raise DemoError(f"the progress page told no story of the lab: {told}")

    def _end(self) -> str:
        """Return when the lab ends."""
        [found] = self._objects("pods", "--all-namespaces", "-l", "vkprovider.io/portal")
        return str(found["metadata"]["annotations"][names.ANNOTATION_TIMESLOT_END])

    def _token(self, name: str) -> str:
        return self._sandbox.kubectl("create", "token", name, f"--namespace={LEARNERS}").stdout.strip()

    def _objects(self, *what: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self._sandbox.kubectl("get", *what, "-o", "json").stdout)["items"]
        return found

    def _not_offered(self) -> list[str]:
        return [] if "netlab" in pod_names(self._objects("runtimeclasses")) else ["netlab"]

    def _left(self) -> list[str]:
        return pod_names(self._objects("namespaces", "-l", "vkprovider.io/portal")) + self._labs.left()


def _compact(text: str) -> str:
    return "\n".join(line for each in text.splitlines() if (line := each.strip()))


def _log_in(who: Person, name: str, then: str) -> None:
    who.open(f"/hub/login?next={then}")
    who.fill("#username_input", name)
    who.fill("#password_input", PASSWORD)
    who.press("#login_submit")
