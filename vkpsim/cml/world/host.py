"""The compute host of a controller: what it has, what is taken, and whether it may launch nodes."""

from typing import Final

from vkpsim.cml.world.model import Resources

ADMISSION_STATES: Final = ("UNREGISTERED", "REGISTERED", "ONLINE", "READY")
"""How far a compute host is admitted; only a READY one runs nodes."""


class Host:
    """One host, which is also the controller. Licences are resources of the host too, counted like CPU and memory."""

    def __init__(self, host_id: str, total: Resources) -> None:
        self.id = host_id
        self.total = total
        self.used = Resources(0, 0, 0)
        self.admission_state = "READY"
        self.connected = True

    @property
    def launches(self) -> bool:
        """Whether nodes may be launched."""
        return self.connected and self.admission_state == "READY"

    def fits(self, needs: Resources) -> bool:
        """Return whether enough is left; a resource that a node does not need never counts as missing."""
        used, total = self.used, self.total
        return (
            (not needs.licences or used.licences + needs.licences <= total.licences)
            and (not needs.cpu_points or used.cpu_points + needs.cpu_points <= total.cpu_points)
            and (not needs.ram_mib or used.ram_mib + needs.ram_mib <= total.ram_mib)
        )

    def take(self, needs: Resources) -> None:
        """Reserve what a node needs."""
        self.used = add(self.used, needs)

    def give(self, held: Resources) -> None:
        """Release what a node holds."""
        self.used = add(self.used, Resources(-held.licences, -held.cpu_points, -held.ram_mib))


def add(a: Resources, b: Resources) -> Resources:
    """Add up resources."""
    return Resources(a.licences + b.licences, a.cpu_points + b.cpu_points, a.ram_mib + b.ram_mib)
