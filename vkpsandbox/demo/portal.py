"""The demo of the portal: a learner asks for a lab by HTTP, watches it start, types on a device, and gives it back."""

import json
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from vkpsandbox.controlplane.content import NAMESPACE
from vkpsandbox.controlplane.portal import HUB, LEARNERS, process_name
from vkpsandbox.demo.stage import BOOTS, Part, Play, Stage, display
from vkpsandbox.demo.terminal import Caller, DemoError, person

LEARNER: Final = "alice"
MENU: Final = Path(__file__).with_name("portal.yaml")
FAMILY: Final = "netlab"
"""The lab of that file."""
BASE: Final = "/nublado/spawner/v1"
OF_PORTAL: Final = ("-l", "vkprovider.io/portal")
_LAB: Final = f"/labs/{LEARNER}"
_WISH: Final = {"options": {"image_type": "recommended", "size": "small"}, "env": {}}
_LEAVE: Final = "\x1d"
"""Ctrl-], which leaves a console."""


def lab_on_request() -> Play:
    """Return the demo of the portal."""
    return Play(
        "A lab on request: a learner asks the portal, without any right to create Pods.",
        {"portals": 1, "worker_args": [BOOTS]},
        lambda stage: Requested(stage).parts(),
        lambda stage: f"Ask for a lab with a token of a ServiceAccount in namespace {LEARNERS}, at\n\n  {_url(stage)}/",
    )


def offer(stage: Stage) -> None:
    """Put a lab on the menu, and wait until it works."""
    stage.run(f"kubectl apply -f {display(MENU)}")
    stage.wait(lambda: stage.lacks("runtimeclasses", [FAMILY]), "the lab on the menu")


def left(stage: Stage) -> list[str]:
    """List what labs of the portal leave."""
    return stage.names("namespaces", *OF_PORTAL) + stage.labs.left()


def _url(stage: Stage) -> str:
    return f"{stage.sandbox.process(process_name(1)).url}{BASE}"


class Requested:
    """A lab of a learner who has a token of the cluster, and nothing else."""

    def __init__(self, stage: Stage) -> None:
        self._stage, url = stage, _url(stage)
        stage.sandbox.kubectl("create", "serviceaccount", LEARNER, f"--namespace={LEARNERS}")
        self._learner = Caller(url, stage.token(LEARNER, LEARNERS))
        self._hub = Caller(url, stage.token(HUB, NAMESPACE))
        self._desk = person(stage.sandbox, LEARNER, self._learner.token, TOKEN=self._learner.token)
        self._namespace = self._pod = ""

    def parts(self) -> list[Part]:
        """Return what is shown."""
        return Part.of(self.offer, self.create, self.follow, self.work, self.extend, self.delete)

    def offer(self) -> None:
        """Put a lab on the menu.

        An author labels a definition; the learner has a token of the cluster, and no right in it.
        """
        offer(self._stage)
        self._stage.wait(self._not_offered, "the lab on the menu")
        self._stage.typed(f"TOKEN=$(kubectl -n {LEARNERS} create token {LEARNER})")
        said = self._types("kubectl --token=$TOKEN auth can-i create pods --all-namespaces", fails=True)
        self._stage.printed(said)
        if said != "no":
            raise DemoError(f"{LEARNER} may create Pods: {said}")

    def create(self) -> None:
        """Ask for a lab.

        The answer comes at once; the portal alone makes the Pod.
        """
        self._curl("POST", f"{_LAB}/create", _WISH)
        self._learner.expect(HTTPStatus.SEE_OTHER, "POST", f"{_LAB}/create", _WISH)
        self._stage.say("   303 See Other")
        refused = self._learner.expect(HTTPStatus.CONFLICT, "POST", f"{_LAB}/create", _WISH)
        self._stage.say(f"   a second time: 409 {refused['detail'][0]['msg']}")

    def follow(self) -> None:
        """Watch it start.

        Every line comes from the objects; any replica tells the same story.
        """
        self._tell_story()
        found, labs = self._stage.get("pods", "--all-namespaces", *OF_PORTAL), self._stage.labs.read()
        if len(found) != 1 or len(labs) != 1:
            raise DemoError(f"the Pods are {[pod['metadata']['name'] for pod in found]}, the labs {labs}")
        self._namespace, self._pod = (found[0]["metadata"][field] for field in ("namespace", "name"))

    def work(self) -> None:
        """Work on a device.

        In the namespace of the lab, and nowhere else, alice may open consoles.
        """
        stage = self._stage
        command = f"kubectl --token=$TOKEN exec -it {self._pod} --namespace={self._namespace} -- console r1"
        stage.typed(command)
        with self._desk.watching(command) as screen:
            stage.wait(lambda: screen.lacks("Escape character"), "the console")  # what is typed before is kubectl's
            screen.type("\rshow version\r")
            stage.wait(lambda: screen.lacks("Cisco IOS"), "the device's answer")
            screen.type(_LEAVE)
        stage.printed("\n".join(line for line in screen.text.splitlines() if line.strip()))
        said = self._types(f"kubectl --token=$TOKEN delete pod/{self._pod} --namespace={self._namespace}", fails=True)
        if "forbidden" not in said:
            raise DemoError(f"{LEARNER} was not refused to delete a Pod: {said}")
        stage.say("   refused: the lab is the portal's to delete")

    def extend(self) -> None:
        """Ask for more time.

        A lab has one end, which everybody can read.
        """
        self._curl("POST", f"{_LAB}/extend", {})
        answer = self._learner.expect(HTTPStatus.OK, "POST", f"{_LAB}/extend", {})
        self._stage.printed(json.dumps(answer))

    def delete(self) -> None:
        """Give it back.

        A hub, such as JupyterHub, deletes labs, and creates none.
        """
        self._curl("DELETE", _LAB)
        self._hub.expect(HTTPStatus.ACCEPTED, "DELETE", _LAB)
        self._stage.say("   202 Accepted")
        self._tell_story()
        self._stage.wait(lambda: left(self._stage), "no namespace and no lab")
        self._stage.say(f"   the namespace {self._namespace} is gone, and every CML is empty")

    # ------------------------------------------------------------------------------------------ what they share
    def _types(self, command: str, *, fails: bool = False) -> str:
        """Show and run what the learner types; return what it printed."""
        self._stage.typed(command)
        return self._desk.run(command, codes=(1,) if fails else (0,)).strip()

    def _tell_story(self) -> None:
        """Show the events of the lab until it is complete."""
        self._curl("GET", f"{_LAB}/events")
        progress, kind = "", ""
        for kind, text in self._learner.events(f"{_LAB}/events"):
            if kind == "progress":
                progress = f"{float(text):3.0f} %"
            else:
                self._stage.say(f"   {progress:>5} {kind}: {text}")
        if kind != "complete":
            raise DemoError(f"the stream ends with {kind!r}, not with 'complete'")

    def _curl(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> None:
        """Show a request as a command."""
        data = "" if body is None else f" -d '{json.dumps(body)}'"
        how = "" if method == "GET" else f" -X {method}"
        self._stage.typed(f'curl{how} -H "Authorization: Bearer $TOKEN"{data} {self._learner.url}{path}')

    def _not_offered(self) -> list[str]:
        """Complain if the form of the learner has no lab."""
        try:
            images = self._hub.expect(HTTPStatus.OK, "GET", "/images")
        except DemoError as error:  # a replica that has just started may know no lab yet
            return [str(error)]
        return [] if images["all"] else [FAMILY]
