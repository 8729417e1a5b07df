"""A real Kubernetes control plane on one machine: stock programs, simulated workers, provider replicas as processes.

`Sandbox.up` starts one, `Sandbox.attach` finds one again, `Sandbox.down` leaves nothing behind.
"""

from vkprovider.sandbox.errors import SandboxError
from vkprovider.sandbox.process import ProcessStatus
from vkprovider.sandbox.record import Lds, Worker
from vkprovider.sandbox.sandbox import Sandbox

__all__ = ["Lds", "ProcessStatus", "Sandbox", "SandboxError", "Worker"]
