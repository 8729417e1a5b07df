"""A learner's lab before the page of the portal: the test writes what the provider would."""

from typing import Any, Final

from tests.component.controllers.looking import eventually, when
from tests.component.portal.asking import Setting
from tests.support.apiserver import GROUP, SYSTEM
from vkprovider.lablet.standing import standing_of
from vkprovider.platform.times import iso

_PROVIDER: Final = f"system:serviceaccount:{SYSTEM}:vkprovider"
_STRATEGIC: Final = "application/strategic-merge-patch+json"
EVIL: Final = "<script>alert(1)</script>"
DEVICES: Final = [
    {"label": "r1", "container": "r1", "nodeDefinition": "iosv", "x": 0, "y": 0},
    {"label": "sw", "container": "sw", "nodeDefinition": "unmanaged_switch", "x": 150, "y": 0},
    {"label": EVIL, "container": "evil", "nodeDefinition": "iosv", "x": 300, "y": 40},
]
LINKS: Final = [{"n1": "r1", "n2": "sw"}, {"n1": "sw", "n2": EVIL}]
PORTS: Final = (
    '{"r1_serial":{"device_label":"r1","protocol":"serial","original_port":1,"allocated_port":10011,"transport":"tcp"},'
    '"r1_pat22":{"device_label":"r1","protocol":"pat","original_port":2,"allocated_port":10012,"internal_port":22,'
    '"transport":"tcp"}}'
)
VIA: Final = '{"r1_serial":{"state":"live","address":"203.0.113.10","port":20000}}'


class LearnersLab:
    """The lab of alice, whose definition has two routers and a switch; one router's label is a script."""

    def __init__(self, made: Setting) -> None:
        self.made = made
        self.world = made.world
        self.world.stage.boots = False

    @property
    def token(self) -> str:
        """The token of alice."""
        return self.made.alice["Authorization"].removeprefix("Bearer ")

    async def draw(self) -> None:
        """Write the devices and links of the definition."""
        path = f"{GROUP}/labletdefinitions/{self.made.definition}-small/status"
        await self.world.admin.patch(path, {"status": {"devices": DEVICES, "links": LINKS}})
        index = self.made.running.replica.index

        def known() -> bool:
            found = index.definition(f"{self.made.definition}-small")
            return found is not None and bool(found.status.get("links"))

        await when(known, "the portal knows the devices")

    async def until_pod(self) -> None:
        """Wait until the Pod of the lab is on a Node; it gets one now, if the test had it wait for that."""
        self.world.stage.binds = True
        await self.world.admin.until(self.world.pod("alice"), lambda pod: bool(pod["spec"].get("nodeName")), "is bound")

    async def write(self, waits: dict[str, str], *, ready: bool = False, **notes: str) -> None:
        """Write the status of a lab that is imported.

        Args:
            waits: By container, the reason for which it waits; "" if it runs.
            ready: Whether it is Ready.
            notes: Further annotations.
        """
        now = iso(int(self.made.running.replica.ctx.wall()))
        entries = []
        for name, reason in waits.items():
            state: dict[str, Any] = {"running": {"startedAt": now}}
            if reason:
                state = {"waiting": {"reason": reason, "message": f"{EVIL} about {name}"}}
            entries.append(
                {"name": name, "image": "x", "imageID": "", "ready": not reason, "restartCount": 0, "state": state}
            )
        conditions = [
            {"type": "Ready", "status": str(ready), "lastTransitionTime": now},
            {"type": "vkprovider.io/LabImported", "status": "True", "lastTransitionTime": now},
        ]
        body = {
            "metadata": {
                "annotations": {f"vkprovider.io/{key.replace('_', '-')}": text for key, text in notes.items()}
            },
            "status": {
                "phase": "Running" if ready else "Pending",
                "conditions": conditions,
                "containerStatuses": entries,
                "podIP": "198.51.100.1",
                "podIPs": [{"ip": "198.51.100.1"}],
            },
        }
        await self.world.admin.request("PATCH", f"{self.world.pod('alice')}/status", body, _STRATEGIC, user=_PROVIDER)

    async def booting(self) -> None:
        """Have one of two devices boot."""
        waits = {"lab": "StartingNodes", "r1": "", "evil": "StartingNodes"}
        await self.write(waits, devices="1/2", content="1.0.0@sha256:x")
        await self.known("booting")

    async def ready(self, **notes: str) -> None:
        """Have the lab be ready."""
        await self.write({"lab": "", "r1": "", "evil": ""}, ready=True, port_mappings=PORTS, access=VIA, **notes)
        index = self.made.running.replica.index
        await when(
            lambda: (lab := index.lab("alice")) is not None and lab.record.outcome, "the portal has made the lab"
        )
        await self.known("ready")

    async def known(self, state: str) -> None:
        """Wait until the page would show a state."""

        async def look() -> bool:
            lab = self.made.running.replica.index.lab("alice")
            return lab is not None and lab.own_pod is not None and standing_of(lab.own_pod)[0] == state

        await eventually(look, f"the portal knows a lab that is {state}")
