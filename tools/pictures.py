"""Pictures of the pages of the portal: `python -m tools.pictures` takes them of a sandbox, in Chromium.

A learner picks a lab, has it and types on a router; an instructor sees the class.
"""

import base64
import json
import time
from pathlib import Path
from typing import Any, Final

from vkprovider.platform.times import iso
from vkpsandbox import Sandbox
from vkpsandbox.controlplane.portal import LEARNERS, process_name
from vkpsandbox.demo.browser import Person, chromium

PICTURES: Final = Path(__file__).parents[1] / "docs" / "pictures"
_NAME: Final = "pictures"
_CLASS: Final = "net101"
_CLASS_SIZE: Final = 8
_LEARNERS: Final = ("bob", "carol", "dave", "erin", "frank", "grace")
_WIDTH, _HEIGHT = 1100, 760
_CONSOLE_S: Final = 2.0
"""How long a device takes to say something, at most."""
_LEFT_S: Final = 5400
"""How long the class lasts."""
_DEVICES: Final = {"r1": ("iosv", 0, 0), "r2": ("iosv", 300, 0), "pc1": ("alpine", 0, 160), "pc2": ("alpine", 300, 160)}
_LINKS: Final = (("r1", "r2"), ("r1", "pc1"), ("r2", "pc2"))


def main() -> None:
    """Take all pictures."""
    boots = [["--boot-seconds=1-2"]] * 2
    sandbox = Sandbox.up(_NAME, workers=2, portals=1, worker_args=boots, tied=True, on_progress=print)
    try:
        tokens = _set_up(sandbox)
        with chromium() as driver:
            driver.set_window_size(_WIDTH, _HEIGHT)
            features = [{"name": "prefers-color-scheme", "value": "light"}]
            driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
            Camera(driver, sandbox.process(process_name(1)).url).visit(tokens)
    finally:
        sandbox.down()


def _set_up(sandbox: Sandbox) -> dict[str, str]:
    """Make the lab, the class and the people; return their tokens."""
    apply = ("apply", "-f", "-")
    sandbox.kubectl(*apply, input=json.dumps(_definition()))
    sandbox.kubectl("wait", "--for=condition=Ready", "labletdefinition/routing", "--timeout=60s")
    sandbox.kubectl("create", "namespace", _CLASS)
    sandbox.kubectl(*apply, input=json.dumps(_pool()))
    people = {name: name for name in ("alice", "irene")}
    for name in people:
        sandbox.kubectl("create", "serviceaccount", name, f"--namespace={LEARNERS}")
    role = ("create", "rolebinding", "instructors", f"--namespace={_CLASS}", "--clusterrole=vkprovider-instructor")
    sandbox.kubectl(*role, f"--serviceaccount={LEARNERS}:irene")
    sandbox.kubectl(
        "wait", "--for=condition=Available", f"--namespace={_CLASS}", "deployment/routing", "--timeout=120s"
    )
    end = iso(int(time.time()) + _LEFT_S)
    listed = sandbox.kubectl("get", "pods", f"--namespace={_CLASS}", "-o", "name").stdout.split()
    for pod, learner in zip(sorted(listed), _LEARNERS, strict=False):
        notes = (f"vkprovider.io/username={learner}", f"vkprovider.io/timeslot-end={end}")
        sandbox.kubectl("annotate", f"--namespace={_CLASS}", pod, *notes)
    unknown = _pod("henry", "routing:9.9.9", {"vkprovider.io/username": "henry"})
    sandbox.kubectl(*apply, f"--namespace={_CLASS}", input=json.dumps(unknown))
    return {name: sandbox.kubectl("create", "token", name, f"--namespace={LEARNERS}").stdout.strip() for name in people}


class Camera(Person):
    """Somebody with a browser, who takes pictures of its pages."""

    def visit(self, tokens: dict[str, str]) -> None:
        """Go through all pages."""
        self.open("/login")
        self._take("portal-login")
        self._log_in(tokens["alice"], "/labs/alice")
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
        self._log_in(tokens["irene"], f"/classes/{_CLASS}")
        self.reads("henry", "main")
        self._take("portal-class")
        self.press("#grid-rows a")
        self.reads("Devices", "main")
        self._take("portal-lablet")
        self.open("/classes")
        self._take("portal-classes")

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

    def _take(self, name: str) -> None:
        """Write a picture of a page to the end of what it has."""
        box = self.driver.execute_script("return document.querySelector('main').getBoundingClientRect().toJSON()")
        height = box["bottom"] + self.driver.execute_script("return scrollY")
        clip = {"x": 0, "y": 0, "width": _WIDTH, "height": height, "scale": 1}
        asked = {"format": "png", "captureBeyondViewport": True, "clip": clip}
        found = self.driver.execute_cdp_cmd("Page.captureScreenshot", asked)
        path = PICTURES / f"{name}.png"
        path.write_bytes(base64.b64decode(found["data"]))
        print(f"wrote {path.relative_to(Path.cwd())}: {path.stat().st_size / 1000:.0f} kB")


def _definition() -> dict[str, Any]:
    """Return a lab of four devices, on the menu."""
    number = {label: index for index, label in enumerate(_DEVICES)}
    ends = {label: [link for link in _LINKS if label in link] for label in _DEVICES}
    nodes = [
        {
            "id": f"n{number[label]}",
            "label": label,
            "node_definition": kind,
            "x": x,
            "y": y,
            "tags": [f"serial:{4000 + number[label]}"],
            "interfaces": [
                {"id": f"i{number[label]}{slot}", "label": f"eth{slot}", "slot": slot, "type": "physical"}
                for slot in range(len(ends[label]))
            ],
        }
        for label, (kind, x, y) in _DEVICES.items()
    ]
    links = [
        {
            "id": f"l{index}",
            "n1": f"n{number[one]}",
            "i1": f"i{number[one]}{ends[one].index(link)}",
            "n2": f"n{number[other]}",
            "i2": f"i{number[other]}{ends[other].index(link)}",
        }
        for index, link in enumerate(_LINKS)
        for one, other in [link]
    ]
    lab = {"version": "0.1.0", "title": "two routers", "description": "", "notes": ""}
    return {
        "apiVersion": "vkprovider.io/v1alpha1",
        "kind": "LabletDefinition",
        "metadata": {"name": "routing", "labels": {"vkprovider.io/family": "routing", "vkprovider.io/size": "small"}},
        "spec": {"version": "1.0.0", "source": {"inline": json.dumps({"lab": lab, "nodes": nodes, "links": links})}},
    }


def _pod(name: str, image: str, annotations: dict[str, str]) -> dict[str, Any]:
    containers = [{"name": each, "image": image} for each in ("lab", *_DEVICES)]
    spec = {"runtimeClassName": "routing", "containers": containers}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "annotations": annotations}, "spec": spec}


def _pool() -> dict[str, Any]:
    """Return a Deployment of lablets, each with a container for each device."""
    labels = {"app": "routing"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "routing", "namespace": _CLASS},
        "spec": {
            "replicas": _CLASS_SIZE,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": _pod("", "routing:1.0.0", {})["spec"]},
        },
    }


if __name__ == "__main__":
    main()
