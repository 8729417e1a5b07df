"""Pictures of the portal and of terminals: `python -m tools.pictures` takes them of a sandbox, in Chromium.

A learner picks a lab, types on a router, changes a device, captures packets and goes on later from what was saved; an
instructor sees the class, its work and grades, and has a pool filled at nine. `sessions` records what people type.
"""

import base64
import json
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from tools.recording import CAPTURE, SCHEDULE, SSH
from tools.scenery import CLASS, definition, installed, lablet, pool
from tools.sessions import Session, wait
from vkpsandbox import Sandbox
from vkpsandbox.controlplane.portal import LEARNERS, process_name
from vkpsandbox.demo.browser import Person, chromium
from vkpsandbox.demo.terminal import Screen, Terminal, person
from vkpsandbox.processes.ports import free_ports

PICTURES: Final = Path(__file__).parents[1] / "docs" / "pictures"
_NAME: Final = "pictures"
_LEARNERS: Final = ("bob", "carol", "dave", "erin", "frank", "grace")
_PREFIX: Final = f"system:serviceaccount:{LEARNERS}:"
_TEACHER: Final = f"{_PREFIX}irene"
_HOST: Final = "labs.example.com"
"""The host of the portal, as ssh is told to reach it."""
_WIDTH, _HEIGHT = 1100, 760
_CONSOLE_S: Final = 2.0
"""How long a device takes to say something, at most."""
_CHECKS: Final = [
    {"device": "r1", "matches": "router ospf 1", "points": 60},
    {"device": "r2", "matches": "router ospf 1", "points": 40},
]
_WORKED: Final = {"carol": ("r1", "r2"), "dave": ("r1",), "erin": ()}
"""Whose work is collected, and on which devices they have typed what is asked for."""

_TYPED: Final = (
    ("\r", "Escape character"),
    ("enable\r", ">"),
    ("configure terminal\r", "#"),
    ("router ospf 1\r", "(config)#"),
    ("end\r\x1d", "(config-router)#"),
)
"""What they type, and what is on the screen before that."""


def main() -> None:
    """Take all pictures."""
    with tempfile.TemporaryDirectory() as folder:
        checks = Path(folder, "checks.json")
        checks.write_text(json.dumps(_CHECKS))
        sandbox = Sandbox.up(
            _NAME,
            workers=2,
            portals=1,
            worker_args=[["--boot-seconds=1-2", "--patty-poll-seconds=0.5"]],
            lds=True,
            lds_args=["--grade=checks", f"--grade-checks={checks}"],
            provider_env={"LDS_API_URL": "", "LDS_API_TOKEN": ""},  # it grades, and has no sessions
            tied=True,
            on_progress=print,
        )
        try:
            Studio(sandbox, Path(folder)).work()
        finally:
            sandbox.down()


class Studio:
    """The sandbox, and what is set up on it."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        """Set nothing up yet; `folder` is for files."""
        self._sandbox = sandbox
        self._folder = folder
        self._admin = Terminal(sandbox, sandbox.kubeconfig, folder)
        [self._ssh_port] = free_ports(1)

    def work(self) -> None:
        """Set the lab, the class and the people up, and take all pictures."""
        self._open_portal()
        self._make_class()
        tokens = {name: self._token(name) for name in ("alice", "irene")}
        with chromium() as driver:
            driver.set_window_size(_WIDTH, _HEIGHT)
            features = [{"name": "prefers-color-scheme", "value": "light"}]
            driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
            download = {"behavior": "allow", "downloadPath": str(self._folder)}
            driver.execute_cdp_cmd("Browser.setDownloadBehavior", download)
            camera = Camera(driver, self._sandbox.process(process_name(1)).url)
            camera.visit(tokens["alice"])
            camera.teach(tokens["irene"], self._collect)
        self._type(tokens["irene"])

    def _open_portal(self) -> None:
        """Have the portal know the provider's page, and serve consoles by ssh."""
        key = self._folder / "key"
        generate = [str(shutil.which("ssh-keygen")), "-q", "-t", "ed25519", "-N", "", "-f", str(key)]
        subprocess.run(generate, check=True)  # noqa: S603 (a program of the system)
        env = {
            "VKPROVIDER_PORTAL_PROVIDER_URL": str(self._sandbox.process("provider-1").url),
            "VKPROVIDER_PORTAL_SSH_PORT": str(self._ssh_port),
            "VKPROVIDER_PORTAL_SSH_HOST_KEY": key.read_text(),
        }
        self._sandbox.stop(process_name(1))
        url = self._sandbox.start(process_name(1), env).url
        wait(lambda: _is_up(f"{url}/login"), "the portal")

    def _make_class(self) -> None:
        """Make the lab, its pool, and the people, of whom some have a lablet."""
        kubectl, apply = self._sandbox.kubectl, ("apply", "-f", "-")
        kubectl(*apply, input=json.dumps(definition()))
        kubectl("wait", "--for=condition=Ready", "labletdefinition/routing", "--timeout=60s")
        kubectl("create", "namespace", CLASS)
        kubectl("label", "namespace", CLASS, "pod-security.kubernetes.io/enforce=baseline")
        kubectl(*apply, input=json.dumps(installed()))
        for name in ("alice", "irene"):
            kubectl("create", "serviceaccount", name, f"--namespace={LEARNERS}")
        self._admin.run(f"kubectl lablet grant {_TEACHER} -n {CLASS} --links --username-prefix {_PREFIX}")
        kubectl(*apply, input=json.dumps(pool()))
        kubectl("wait", "--for=condition=Available", f"--namespace={CLASS}", "deployment/warm", "--timeout=120s")
        (self._folder / "names.csv").write_text("\n".join(_LEARNERS) + "\n")
        given = f"kubectl lablet assign deployment/warm --from-file names.csv --until 90m -n {CLASS}"
        self._admin.run(given)
        unknown = lablet("henry", "routing:9.9.9", {"vkprovider.io/username": "henry"})
        kubectl(*apply, f"--namespace={CLASS}", input=json.dumps(unknown))

    def _token(self, name: str) -> str:
        return self._sandbox.kubectl("create", "token", name, f"--namespace={LEARNERS}").stdout.strip()

    def _collect(self) -> None:
        """Have some learners work, and their work be collected and graded."""
        for learner, devices in _WORKED.items():
            for device in devices:
                self._configure(learner, device)
        learners = " ".join(f"-u {learner}" for learner in _WORKED)
        self._admin.run(f"kubectl lablet collect -n {CLASS} {learners} --yes --wait")

    def _configure(self, learner: str, device: str) -> None:
        with self._admin.watching(f"kubectl lablet console -n {CLASS} -u {learner} {device}") as screen:
            for typed, prompt in _TYPED:
                wait(partial(_shows, screen, prompt), f"{prompt} at the console of {device}")
                screen.type(typed)
            time.sleep(_CONSOLE_S)

    def _pod_of(self, learner: str) -> str:
        found = json.loads(self._sandbox.kubectl("get", "pods", f"--namespace={CLASS}", "-o", "json").stdout)
        pods = {each["metadata"].get("annotations", {}).get("vkprovider.io/username"): each for each in found["items"]}
        return str(pods[learner]["metadata"]["name"])

    # ------------------------------------------------------------------------------------------ terminals
    def _type(self, teacher: str) -> None:
        """Record what an instructor and a learner type."""
        desk = person(self._sandbox, "irene", teacher, namespace=CLASS)
        session = Session(SCHEDULE, desk)
        times = "--at 09:00 --ready 24 --until 17:00 --days mon,wed --tz Europe/Berlin"
        session.run(f"kubectl lablet schedule deployment/warm {times}")
        session.run("kubectl get cronjobs")
        session.run("kubectl lablet schedule --list")
        session.end()
        session = Session(CAPTURE, desk)
        session.run("kubectl lablet capture -u bob")
        session.run("kubectl lablet capture -u bob r1-r2 --packets=6 | tcpdump -n -r -")
        session.end()
        portal = f"--portal https://{_HOST}"
        made = desk.run(f"kubectl lablet assign {self._pod_of('bob')} bob --links {portal}")
        session = Session(SSH, self._with_ssh(made.split("#")[1].split()[0]))
        session.run(f"ssh bob@{_HOST}")
        session.at_a_console(f"ssh bob+r1@{_HOST}", "r1>", [("show version", "uptime"), ("", "r1>")])
        session.end()

    def _with_ssh(self, code: str) -> Terminal:
        """Return a terminal whose ssh reaches the portal by the name of its host, and gives the code as password."""
        home = self._folder / "learner"
        home.mkdir()
        known = f"HostName 127.0.0.1\nPort {self._ssh_port}\nUserKnownHostsFile {home}/known\n"
        quiet = "StrictHostKeyChecking no\nLogLevel ERROR\nPubkeyAuthentication no\n"
        (home / "config").write_text(f"Host {_HOST}\n{known}{quiet}")
        for name, does in (("ssh", f'exec {shutil.which("ssh")} -F {home}/config "$@"'), ("say", f"echo {code}")):
            (home / name).write_text(f"#!/bin/sh\n{does}\n")
            (home / name).chmod(0o755)
        environ = {"PATH": f"{home}:/usr/bin:/bin", "SSH_ASKPASS": f"{home}/say", "SSH_ASKPASS_REQUIRE": "force"}
        return Terminal(self._sandbox, self._sandbox.kubeconfig, home, environ)


class Camera(Person):
    """Somebody with a browser, who takes pictures of its pages."""

    def visit(self, token: str) -> None:
        """Go through the pages of a learner."""
        self.open("/login")
        self._take("portal-login")
        self._log_in(token, "/labs/alice")
        self.reads("Start a lab", "main")
        self._take("portal-start")
        self.press("#lab-start form button")
        self.reads("Your lab is ready", "main")
        self.press('a[data-console][href$="/r1"]')
        self._type("\n", "show version\n", frame="#console-frames iframe")
        self._take("portal-lab")
        self.open("/labs/alice/consoles/r1")
        self._type("\n")
        self._take("portal-console")
        self._capture()
        self._change_a_device()
        self._use_a_screen()
        self._go_on_later()

    def teach(self, token: str, collect: Callable[[], None]) -> None:
        """Go through the pages of an instructor; `collect` is called for the work of some learners."""
        self._log_in(token, f"/classes/{CLASS}")
        self.reads("henry", "main")
        self._take("portal-class")
        self.press("#grid-rows a")
        self.reads("Devices", "main")
        self._take("portal-lablet")
        self.open("/classes")
        self._take("portal-classes")
        collect()
        self.open(f"/classes/{CLASS}/work")
        self.reads("What the grader says", "main")
        self._take("portal-grades")

    def _capture(self) -> None:
        self.open("/labs/alice")
        self.press("#lab-picture details.captures summary")
        self.press('#lab-picture button[value="r1-r2"]')
        time.sleep(_CONSOLE_S)
        self._take("portal-capture", "#lab-picture")
        self.press('#lab-picture button[formaction$="/captures/stop"]')
        time.sleep(_CONSOLE_S)

    def _change_a_device(self) -> None:
        """Stop a router, and open what may be done to the other one."""
        self.open("/labs/alice")
        self._press_of("r2", "stop")
        self._found(_act_of("r2", "start"))
        self.press(f"{_menu_of('r1')} summary")
        time.sleep(_CONSOLE_S)
        self._take("portal-device", "#lab-picture", "#lab-devices")
        self.open("/labs/alice")
        self._press_of("r2", "start")
        self._found(_act_of("r2", "stop"))

    def _press_of(self, device: str, act: str) -> None:
        self.press(f"{_menu_of(device)} summary")
        self.press(_act_of(device, act))

    def _use_a_screen(self) -> None:
        self.open("/labs/alice")
        self.press('a[aria-label^="Screen of"]')
        self._found('#screen[data-state="shown"] canvas')
        time.sleep(_CONSOLE_S)
        self._take("portal-screen")

    def _go_on_later(self) -> None:
        """End the lab, and begin the next one from what was saved."""
        self.open("/labs/alice")
        end = '#lab-acts details:has(button[formaction$="/stop"])'
        self.press(f"{end} summary")
        self._take("portal-save", "#lab-state", "#lab-acts")
        self.press(f"{end} button.danger")
        self.reads("Start a lab", "main")
        self.open("/labs/alice")
        self.press('#lab-saved option:not([value=""])')
        self._take("portal-begin-from")

    def _log_in(self, token: str, then: str) -> None:
        self.driver.delete_all_cookies()
        self.open(f"/login?next={then}")
        self.fill("#token", token)
        self.press("main form button")

    def _type(self, *lines: str, frame: str = "") -> None:
        """Type in the console that has just been opened, on a page of its own or in a frame."""
        if frame:
            self.within(frame)
        for line in lines:
            time.sleep(_CONSOLE_S)
            self.fill(".xterm-helper-textarea", line)
        time.sleep(_CONSOLE_S)
        self.driver.switch_to.default_content()

    def _take(self, name: str, first: str = "", last: str = "") -> None:
        """Write a picture of a page to the end of what it has, or from one element of it to another."""
        top = self._box(first)["top"] - _MARGIN if first else 0
        height = self._box(last or first or "main")["bottom"] - top + (_MARGIN if first else 0)
        clip = {"x": 0, "y": top, "width": _WIDTH, "height": height, "scale": 1}
        asked = {"format": "png", "captureBeyondViewport": True, "clip": clip}
        found = self.driver.execute_cdp_cmd("Page.captureScreenshot", asked)
        path = PICTURES / f"{name}.png"
        path.write_bytes(base64.b64decode(found["data"]))
        print(f"wrote {path.relative_to(Path.cwd())}: {path.stat().st_size / 1000:.0f} kB")

    def _box(self, css: str) -> dict[str, float]:
        """Return where an element is on the page."""
        found = self.driver.execute_script(_BOX, css)
        return {side: float(found[side]) for side in ("top", "bottom")}


_MARGIN: Final = 12
_BOX: Final = """
const { top, bottom } = document.querySelector(arguments[0]).getBoundingClientRect();
return { top: top + scrollY, bottom: bottom + scrollY };
"""


def _menu_of(device: str) -> str:
    return f'#lab-devices details:has(button[value="{device}"])'


def _act_of(device: str, act: str) -> str:
    return f'{_menu_of(device)} button[formaction$="/devices/{act}"]'


def _shows(screen: Screen, words: str) -> bool:
    return not screen.lacks(words)


def _is_up(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5):  # noqa: S310 (of the sandbox)
            return True
    except OSError:
        return False


if __name__ == "__main__":
    main()
