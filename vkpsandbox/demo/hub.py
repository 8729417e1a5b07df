"""The demo of a JupyterHub: a learner with a browser starts a lab, works in it and stops it; an instructor looks on."""

import contextlib
import secrets
import sys
import time
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from vkprovider.lablet import names
from vkpsandbox.controlplane.content import NAMESPACE
from vkpsandbox.controlplane.portal import HUB, LEARNERS, process_name
from vkpsandbox.controlplane.waiting import await_processes
from vkpsandbox.demo.browser import Person, person, require_browser
from vkpsandbox.demo.portal import FAMILY, OF_PORTAL, left, offer
from vkpsandbox.demo.stage import BOOTS, SOON_S, Part, Play, Stage
from vkpsandbox.demo.terminal import Caller, DemoError
from vkpsandbox.processes.ports import free_ports
from vkpsandbox.processes.process import ProcessSpec
from vkpsandbox.start import add_process

LEARNER: Final = "alice"
TEACHER: Final = "teacher"
CLASS: Final = "friday"
PASSWORD: Final = "learning"  # noqa: S105 (of a demo)
SERVICE: Final = "/services/vkprovider"
_CONFIG: Final = """\
import os
c = get_config()
c.JupyterHub.spawner_class = c.JupyterHub.proxy_class = "vkprovider"
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allow_all = c.Authenticator.enable_auth_state = True
c.DummyAuthenticator.password = here["password"]
c.JupyterHub.cleanup_servers = c.JupyterHub.cleanup_proxy = False
c.JupyterHub.db_url = f"sqlite:///{os.environ['HUB_FOLDER']}/hub.sqlite"
c.JupyterHub.cookie_secret_file = f"{os.environ['HUB_FOLDER']}/cookies"
c.JupyterHub.bind_url = here["url"]
c.JupyterHub.hub_port = here["api_port"]
c.JupyterHub.tornado_settings = {"slow_spawn_timeout": 0}
c.JupyterHub.services = [{
    "name": "vkprovider", "url": here["portal"], "api_token": here["service"], "oauth_no_confirm": True,
    "oauth_client_allowed_scopes": ["admin:auth_state!user"],
}]
c.JupyterHub.load_roles = [{
    "name": "user", "scopes": ["self", "access:services!service=vkprovider", "admin:auth_state!user"],
}]
c.ConfigurableHTTPProxy.should_start = False
c.ConfigurableHTTPProxy.api_url = here["proxy_api"]
c.VkproviderSpawner.service_url = here["portal"]
c.VkproviderSpawner.token_file = f"{os.environ['HUB_FOLDER']}/token"
async def with_token(authenticator, handler, authentication):
    return {**authentication, "auth_state": {"token": here["people"].get(authentication["name"], "")}}
c.Authenticator.post_auth_hook = with_token
def of_class(form):
    return {**form, "class": [here["class"]]}
c.Spawner.options_from_form = of_class
"""


def labs_in_a_hub() -> Play:
    """Return the demo of a hub.

    Raises:
        DemoError: There is no JupyterHub, or no browser.
    """
    here = plan_hub()
    return Play(
        "A JupyterHub in front: a learner with nothing but a browser has a lab.",
        {"portals": 1, "portal_env": asked_by(here), "worker_args": [BOOTS]},
        lambda stage: Campus(stage, here).parts(),
        lambda _: f"Log in as {LEARNER} or {TEACHER}, with the password {PASSWORD!r}, at\n\n  {here['url']}",
    )


def plan_hub() -> dict[str, Any]:
    """Return what the hub's configuration has, but for portal and people.

    Raises:
        DemoError: There is no JupyterHub, or no browser.
    """
    require_hub()
    require_browser()
    proxy, api, proxy_api = free_ports(3)
    return {
        "url": f"http://127.0.0.1:{proxy}",
        "api_port": api,
        "proxy_api": f"http://127.0.0.1:{proxy_api}",
        "service": secrets.token_hex(16),
        "password": PASSWORD,
        "class": CLASS,
    }


def asked_by(here: Mapping[str, Any]) -> dict[str, str]:
    """Return the settings of a portal that asks the planned hub who its visitors are."""
    return {
        "VKPROVIDER_PORTAL_HUB_API_URL": f"http://127.0.0.1:{here['api_port']}/hub/api",
        "VKPROVIDER_PORTAL_HUB_TOKEN": str(here["service"]),
    }


class Campus:
    """A learner and an instructor, each with a browser at the hub.

    Attributes:
        alice: The learner's.
    """

    def __init__(self, stage: Stage, here: Mapping[str, Any]) -> None:
        """Start the learner's browser; `here` is what the hub's configuration has, but for portal and people."""
        self._stage, self._here, self._url = stage, here, str(here["url"])
        self.alice = stage.closing.enter_context(person(self._url))

    def parts(self) -> list[Part]:
        """Return what is shown."""
        return Part.of(self.prepare, self.start, self.follow, self.work, self.teach, self.stop)

    def prepare(self) -> None:
        """Start a JupyterHub.

        It and its proxy are stock; its spawner asks the portal, and the hub has no right in the cluster.
        """
        stage = self._stage
        offer(stage)
        stage.run(f"kubectl create namespace {CLASS}")
        for name in (LEARNER, TEACHER):
            stage.sandbox.kubectl("create", "serviceaccount", name, f"--namespace={LEARNERS}")
        for role, subject in (
            ("vkprovider-class-learner", f"--group=system:serviceaccounts:{LEARNERS}"),
            ("vkprovider-instructor", f"--serviceaccount={LEARNERS}:{TEACHER}"),
        ):
            stage.run(f"kubectl -n {CLASS} create rolebinding {role} --clusterrole={role} {subject}")
        began = time.monotonic()
        start_hub(stage, self._here, {name: stage.token(name, LEARNERS) for name in (LEARNER, TEACHER)})
        stage.say(f"   JupyterHub at {self._url} after {time.monotonic() - began:.1f} s")

    def start(self) -> None:
        """Log in, and pick a lab.

        alice has a browser, and nothing else.
        """
        alice = self.alice
        alice.remember(".progress-log-event")
        _log_in(alice, LEARNER, "/hub/spawn")
        self._stage.printed(_compact(alice.reads("Lab", "#spawn_form")))
        alice.press("input[name=image_list]")
        alice.press("input[name=size]")

    def follow(self) -> None:
        """Watch it start.

        The progress page of the hub shows the portal's lines as they come.
        """
        stage, alice = self._stage, self.alice
        nodes = " ".join(stage.names("nodes"))
        stage.admin.run(f"kubectl cordon {nodes}")  # a lab that is there before the progress page has nothing to tell
        alice.press("#spawn_form button[type=submit]")
        told: list[str] = []
        until = time.monotonic() + SOON_S
        there = False
        while not there:
            if time.monotonic() > until:
                raise DemoError(f"{alice.path} is shown after {SOON_S:.0f} s; the hub told {told}")
            there = alice.path.startswith(SERVICE)  # all lines were on the page before it
            for line in alice.remembered[len(told) :]:
                if not told:
                    stage.admin.run(f"kubectl uncordon {nodes}")
                told.append(line)
                stage.say(f"   {line}")
            time.sleep(0.1)
        if not any("imported" in line for line in told):
            raise DemoError(f"the progress page told no story of the lab: {told}")

    def work(self) -> None:
        """Work on a device.

        Who is logged in at the hub is logged in at the portal.
        """
        tell, alice = self._stage.printed, self.alice
        alice.await_path(f"{SERVICE}/labs/{LEARNER}")
        tell(alice.reads(FAMILY, "#lab-state"))
        tell(alice.reads("r1", ".devices"))
        alice.press(".devices a[data-console]")
        alice.within("#console-frame, #console-frames iframe")  # one, or a tab for each
        alice.reads("You type", "#console-status")  # what is typed before is lost
        alice.fill(".xterm-helper-textarea", "\nshow version\n")
        tell(_compact(alice.reads("Cisco IOS", ".xterm-rows")))

    def teach(self) -> None:
        """Look at the class, and give everybody more time.

        teacher has no lab, and instructs friday by one RoleBinding.
        """
        with person(self._url) as teacher:
            _log_in(teacher, TEACHER, f"{SERVICE}/classes/{CLASS}")
            self._stage.printed(teacher.reads(LEARNER, "#grid-rows"))
            before = self._end()
            teacher.press("input[name=scope][value=all]")
            teacher.press("#ask-extend summary")
            teacher.press("#ask-extend button")
            self._stage.printed(teacher.reads(LEARNER, "main"))
        after = self._end()
        if after <= before:
            raise DemoError(f"the lab of {LEARNER} ends {after}, as it did before it was extended ({before})")
        self._stage.say(f"   it ended {before}, and ends {after}")

    def stop(self) -> None:
        """Stop it.

        At the hub, as any server there.
        """
        self.alice.open("/hub/home")
        self.alice.press_until("#stop", "#start[title]")
        took_s = self._stage.wait(lambda: left(self._stage), "no namespace and no lab")
        self._stage.say(f"   gone after {took_s:.1f} s, and every CML is empty")

    def _end(self) -> str:
        """Return when the lab ends."""
        [found] = self._stage.get("pods", "--all-namespaces", *OF_PORTAL)
        return str(found["metadata"]["annotations"][names.ANNOTATION_TIMESLOT_END])


def _compact(text: str) -> str:
    return "\n".join(line for each in text.splitlines() if (line := each.strip()))


def _log_in(who: Person, name: str, then: str) -> None:
    who.open(f"/hub/login?next={then}")
    who.fill("#username_input", name)
    who.fill("#password_input", PASSWORD)
    who.press("#login_submit")


def require_hub() -> Path:
    """Return the environment that has a JupyterHub.

    Raises:
        DemoError: There is none.
    """
    home = Path(sys.prefix) / "hub"
    if not (home / "bin" / "jupyterhub").exists() or not _proxy(home).exists():
        raise DemoError(f"there is no JupyterHub in {home}: in a checkout, make demo HUB=1 installs it (with npm)")
    return home


def start_hub(stage: Stage, here: Mapping[str, Any], people: Mapping[str, str]) -> None:
    """Start the hub and its proxy, and wait until both answer.

    Args:
        stage: Its sandbox has a portal that asks this hub.
        here: What the configuration has, but for portal and people.
        people: The token of each person who may log in, by name.

    Raises:
        DemoError: There is no JupyterHub.
        SandboxError: It does not start.
    """
    home, layout, url = require_hub(), stage.sandbox.layout, str(here["url"])
    folder = layout.hub
    folder.mkdir(mode=0o700)
    (folder / "token").write_text(stage.token(HUB, NAMESPACE))
    config = folder / "jupyterhub_config.py"
    whole = {**here, "portal": stage.sandbox.process(process_name(1)).url, "people": dict(people)}
    config.write_text(f"here = {whole!r}\n{_CONFIG}")
    shared = {"CONFIGPROXY_AUTH_TOKEN": secrets.token_hex(16)}
    hub = f"http://127.0.0.1:{here['api_port']}"
    at, api = urlsplit(url), urlsplit(here["proxy_api"])
    local = ("--ip", at.hostname, "--port", str(at.port), "--api-ip", api.hostname, "--api-port", str(api.port))
    proxy_argv = [str(_proxy(home)), *map(str, local), "--error-target", f"{hub}/hub/error"]
    hub_env = {"HUB_FOLDER": str(folder), "JUPYTERHUB_CRYPT_KEY": secrets.token_hex(32), **shared}
    hub_argv = [str(home / "bin" / "python"), "-m", "jupyterhub", "-f", str(config)]
    specs = (
        ProcessSpec(name="hub-proxy", argv=proxy_argv, env={**shared}, url=url),
        ProcessSpec(name="hub", argv=hub_argv, env={**hub_env}, url=hub, grace_s=5),
    )
    for spec in specs:
        add_process(layout, spec)
    started = [spec.name for spec in specs]
    await_processes(layout, started, lambda: _answers(url), f"the hub at {url}")


def _answers(url: str) -> bool:
    with contextlib.suppress(DemoError):
        Caller(url).expect(HTTPStatus.OK, "GET", "/hub/api/")
        return True
    return False


def _proxy(home: Path) -> Path:
    return home / "npm" / "node_modules" / ".bin" / "configurable-http-proxy"
