"""A real Kubernetes control plane on one machine: stock programs, simulated workers, provider replicas as processes.

`Sandbox.up` starts one, `Sandbox.attach` finds one again, `Sandbox.down` leaves nothing behind.

* `sandbox`, `start`: a whole sandbox; `paths`, `errors`: where it keeps its files, its error.
* `processes`: child processes, their supervisor and the record of them.
* `controlplane`: etcd and the Kubernetes programs: building, configuring, waiting for them, and filling the cluster.
* `node`: an ordinary Node that runs containers.
* `demo`: the story of `vkprovider demo`; `commands`: the commands `sandbox` and `demo`.
"""

from vkpsandbox.errors import SandboxError
from vkpsandbox.processes.process import ProcessStatus
from vkpsandbox.processes.record import Lds, Worker
from vkpsandbox.sandbox import Sandbox

__all__ = ["Lds", "ProcessStatus", "Sandbox", "SandboxError", "Worker"]
