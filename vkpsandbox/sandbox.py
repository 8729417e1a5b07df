"""A sandbox, as commands, tests and benchmarks use it."""

import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Final, Self

import msgspec

from vkprovider.platform.messages import count
from vkpsandbox import start
from vkpsandbox.controlplane import build, content, muxes, programs
from vkpsandbox.controlplane.components import Tuning
from vkpsandbox.controlplane.kept import Progress
from vkpsandbox.controlplane.kubectl import Kubectl
from vkpsandbox.controlplane.tunnels import Tunnel, plan_broker, plan_tokens
from vkpsandbox.errors import SandboxError
from vkpsandbox.node import needs, room, runtime
from vkpsandbox.node.programs import ensure_node_programs
from vkpsandbox.paths import Layout, layout_of
from vkpsandbox.processes.control import request, supervised
from vkpsandbox.processes.process import ProcessStatus
from vkpsandbox.processes.record import Lds, OrdinaryNode, Record, Worker, claimed, remove_files
from vkpsandbox.processes.strays import end_all, end_marked

NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class Sandbox:
    """A control plane on this machine, with simulated workers and provider replicas.

    A context manager: the sandbox ends with the block.
    """

    def __init__(self, layout: Layout, record: Record) -> None:
        self.layout = layout
        self._record = record
        self._supervisor: subprocess.Popen[bytes] | None = None
        self._kubectl = Kubectl(Path(record.kubectl), layout)

    @classmethod
    def up(
        cls,
        name: str = "default",
        *,
        directory: Path | None = None,
        workers: int = 2,
        replicas: int = 1,
        backend: programs.Backend = "cml",
        tunnel: Tunnel = "direct",
        audit: bool = False,
        controllers: bool = True,
        provider: bool = True,
        policies: bool = False,
        lds: bool = False,
        lds_args: Sequence[str] = (),
        mux: bool = False,
        portals: int = 0,
        portal_env: Mapping[str, str] = NOTHING,
        provider_env: Mapping[str, str] = NOTHING,
        worker_args: Sequence[Sequence[str]] | None = None,
        worker_spec: Mapping[str, Any] = NOTHING,
        component_args: Mapping[str, Sequence[str]] = NOTHING,
        component_env: Mapping[str, str] = NOTHING,
        kubeconfig: Path | None = None,
        node: bool = False,
        tied: bool = False,
        download: bool = False,
        on_progress: Progress = lambda _: None,
    ) -> Self:
        """Start a sandbox and return it when all its nodes are Ready.

        Args:
            name: Its name.
            directory: Directory of its files; by default below `$XDG_STATE_HOME`.
            workers: How many workers.
            replicas: How many provider replicas.
            backend: `cml`: a simulator per worker; `null`: the provider answers itself.
            tunnel: How the provider reaches the workers: itself; by MQTT, with a broker and an agent per worker; or by
                HTTP, with an agent per worker that dials the replicas.
            audit: Whether the API server writes an audit log.
            controllers: Whether kube-scheduler and kube-controller-manager run; without them no Pod is placed, no
                namespace has a ServiceAccount, and no owned object is collected.
            provider: Whether the provider runs.
            policies: Whether the admission policies of an installation apply, besides those of `manifests/base`.
            lds: Whether there is a simulated Lab Delivery System; the provider uses it then, and its events go to all
                replicas in turn.
            lds_args: Further arguments of `vkprovider sim lds`.
            mux: Whether there is a mux, the Service `labs` in the provider's namespace, with the program that serves it
                and a relay on loopback.
            portals: How many replicas of the portal; its users are the ServiceAccounts of the namespace `learners`.
            portal_env: Further environment variables of the portal.
            provider_env: Further environment variables of the provider.
            worker_args: Further arguments of `vkprovider sim cml`, one list per worker, used again from the first
                when there are fewer lists than workers.
            worker_spec: Fields of every CMLWorker's spec that replace the defaults, such as `{"capacity": {…}}`.
            component_args: Further arguments of the control plane's programs, by name (`kube-scheduler`); without, it
                runs with stock defaults.
            component_env: Environment variables of all of them.
            kubeconfig: Use this cluster instead of starting a control plane.
            node: Whether there is an ordinary Node, which runs containers.
            tied: End when this process ends.
            download: Whether official programs of Kubernetes are downloaded rather than built, if there are none yet.
            on_progress: Called with one line per step.

        Raises:
            SandboxError: If it does not come up; its processes have ended then, its logs are kept.
        """
        layout = layout_of(name, directory)
        if kubeconfig:
            kubectl = build.find_kubectl()
        else:
            kubectl = build.ensure_programs(on_progress, by_download=download) / "kubectl"
        if node:
            needs.require(layout)
        built = ensure_node_programs(on_progress) if node else {}
        with claimed(layout), room.vacated(layout):
            ordinary = start.plan_node(layout) if node else None
            record = Record(
                name=name,
                kubectl=str(kubectl),
                context=f"vkprovider-sandbox-{name}",
                foreign=kubeconfig is not None,
                audit=audit and kubeconfig is None,
                workers=programs.plan_workers(layout, workers, backend, ordinary),
                lds=programs.plan_lds(layout) if lds else None,
                node=ordinary,
            )
            if tunnel == "mqtt":
                record = msgspec.structs.replace(record, broker=plan_broker(record.workers))
            elif tunnel == "http":
                record = msgspec.structs.replace(record, tokens=plan_tokens(record.workers))
            record.save(layout)
            sandbox = cls(layout, record)
            try:
                tuning = Tuning(component_args, component_env)
                sandbox._start_cluster(kubeconfig, tuning, controllers=controllers, tied=tied, on_progress=on_progress)
                steps = (layout, sandbox._kubectl, sandbox._record)
                if ordinary:
                    start.start_node(layout, sandbox._kubectl, ordinary, built)
                    on_progress(f"node {ordinary.name} Ready at {ordinary.address}")
                if workers or provider:
                    start.create_workers(*steps, worker_args or [()], worker_spec, policies=policies)
                    on_progress(f"{count(workers, 'worker')} created")
                providers = start.plan_providers(layout, record, replicas, provider_env) if provider else []
                start.start_agents(layout, record, providers, worker_spec)
                if record.lds:
                    start.start_lds(layout, record.lds, providers, lds_args)
                    on_progress(f"Lab Delivery System at {record.lds.url}")
                if mux:
                    on_progress(f"mux {content.NAMESPACE}/{muxes.NAME} at {start.start_mux(*steps)}")
                if provider:
                    start.start_providers(*steps, providers)
                    on_progress(f"{count(workers, 'node')} Ready, {count(replicas, 'provider replica')}")
                if portals:
                    urls = start.start_portal(layout, sandbox._kubectl, portals, portal_env)
                    on_progress(f"portal at {' and '.join(urls)}")
            except BaseException:
                sandbox.end_processes()
                raise
            return sandbox

    @classmethod
    def attach(cls, name: str = "default", directory: Path | None = None) -> Self:
        """Return a sandbox that `up` made, perhaps in another process.

        Raises:
            SandboxError: If there is none.
        """
        layout = layout_of(name, directory)
        return cls(layout, Record.load(layout))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.down()

    @property
    def name(self) -> str:
        """Its name."""
        return self._record.name

    @property
    def directory(self) -> Path:
        """Where its files are."""
        return self.layout.directory

    @property
    def kubeconfig(self) -> Path:
        """The admin's kubeconfig."""
        return self.layout.kubeconfig

    @property
    def provider_kubeconfig(self) -> Path:
        """The provider's kubeconfig: a token of its ServiceAccount."""
        return self.layout.provider_kubeconfig

    @property
    def audit_log(self) -> Path | None:
        """The API server's audit log, if there is one."""
        return self.layout.audit_log if self._record.audit else None

    @property
    def programs(self) -> Path:
        """The directory with kubectl and the other programs."""
        return Path(self._record.kubectl).parent

    @property
    def workers(self) -> list[Worker]:
        """Its simulated workers."""
        return list(self._record.workers)

    @property
    def node(self) -> OrdinaryNode | None:
        """Its ordinary Node, if it has one."""
        return self._record.node

    @property
    def lds(self) -> Lds | None:
        """Its simulated Lab Delivery System, if it has one."""
        return self._record.lds

    def processes(self) -> list[ProcessStatus]:
        """Return the status of its processes; they are `lost` if the supervisor is gone, because they died with it."""
        if supervised(self.layout):
            return msgspec.convert(request(self.layout, "ps")["processes"], list[ProcessStatus])
        try:
            table = msgspec.json.decode(self.layout.processes.read_bytes(), type=list[ProcessStatus])
        except FileNotFoundError:
            return []
        return [msgspec.structs.replace(status, pid=None, state="lost") for status in table]

    def process(self, name: str) -> ProcessStatus:
        """Return the status of one process.

        Raises:
            SandboxError: If no process has that name.
        """
        for status in self.processes():
            if status.name == name:
                return status
        raise SandboxError(f"sandbox {self.name} has no process {name}: see `vkprovider sandbox ps`")

    def stop(self, process: str, *, grace_s: float = 5) -> ProcessStatus:
        """End a process and keep it down: SIGTERM, after the grace SIGKILL."""
        return self._ask("stop", name=process, grace_s=grace_s)

    def start(self, process: str, env: Mapping[str, str] = NOTHING) -> ProcessStatus:
        """Start a stopped or killed process, with further environment variables until it is stopped again."""
        return self._ask("start", name=process, env=dict(env))

    def kill(self, process: str, number: signal.Signals = signal.SIGKILL) -> ProcessStatus:
        """Send a signal to a process and its children; after SIGKILL, return when it is gone.

        A control-plane process is restarted, as after any crash; a worker or a provider replica that gets a
        deadly signal stays down until `start`.
        """
        return self._ask("kill", name=process, signal=int(number))

    def kubectl(
        self,
        *arguments: str,
        input: str | None = None,  # noqa: A002 (as in subprocess.run)
        check: bool = True,
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl as admin.

        Raises:
            SandboxError: If it fails and `check` is set.
        """
        return self._kubectl(*arguments, stdin=input, check=check)

    def load(self, archive: Path) -> str:
        """Give the ordinary Node the images of an archive, of docker or OCI; return what containerd says.

        Raises:
            SandboxError: There is no Node, or it is no such archive.
        """
        return runtime.load(self.layout, archive.absolute())

    def down(self, *, on_progress: Progress = lambda _: None) -> None:
        """End all processes, also strays, and remove the files.

        On the user's own cluster the workers are deleted first, while the provider can still remove their finalizers;
        the manifests stay.

        Raises:
            SandboxError: If a process survives, or the cluster refuses; all else is done then.
        """
        refused = None
        try:
            if self._record.foreign and self.workers and self.kubeconfig.exists():
                on_progress(f"deleting the workers of sandbox {self.name} from the cluster of {self._record.context}")
                content.delete_workers(self._kubectl, self.workers, self.name)
        except SandboxError as error:
            refused = error
        finally:
            self.end_processes()
        remove_files(self.layout)
        if not any(self.directory.iterdir()):
            self.directory.rmdir()
        if refused:
            raise SandboxError(
                f"sandbox {self.name} is gone, but objects labelled {content.LABEL}={self.name} may remain in the "
                f"cluster of {self._record.context}: {refused}"
            ) from refused

    @classmethod
    def remove(
        cls, name: str = "default", directory: Path | None = None, on_progress: Progress = lambda _: None
    ) -> None:
        """End and remove a sandbox, also one whose files are damaged or gone.

        Raises:
            SandboxError: If there is nothing to remove, or `down` fails.
        """
        layout = layout_of(name, directory)
        try:
            sandbox = cls(layout, Record.load(layout))
        except SandboxError:
            if not end_marked(layout.directory) and not layout.record.exists():
                raise
            room.vacate(layout)
            remove_files(layout)
        else:
            sandbox.down(on_progress=on_progress)

    def end_processes(self) -> None:
        """End all processes and keep the files."""
        end_all(self.layout)
        if self._supervisor:
            self._supervisor.kill()
            self._supervisor.wait()
            self._supervisor = None
        room.vacate(self.layout)

    def _ask(self, op: str, **arguments: Any) -> ProcessStatus:
        """Send the supervisor a request about a process."""
        return msgspec.convert(request(self.layout, op, **arguments)["process"], ProcessStatus)

    def _start_cluster(
        self, kubeconfig: Path | None, tuning: Tuning, *, controllers: bool, tied: bool, on_progress: Progress
    ) -> None:
        """Start a control plane, or copy the kubeconfig of the user's own."""
        if kubeconfig:
            context = start.plan_foreign(self.layout, self._kubectl, kubeconfig)
            on_progress(f"using the cluster of context {context} in {kubeconfig}")
            self._record = msgspec.structs.replace(self._record, context=context)
            self._record.save(self.layout)
            self._start_supervisor(tied=tied)
            return
        started = time.monotonic()
        ports = start.plan_control_plane(self.layout, self.programs, self._record, tuning)
        self._start_supervisor(tied=tied)
        start.finish_control_plane(self.layout, self.programs, ports, self._kubectl, tuning, controllers=controllers)
        on_progress(f"control plane ready at {ports.server} after {time.monotonic() - started:.1f} s")

    def _start_supervisor(self, *, tied: bool) -> None:
        """Start the supervisor; it starts what `start` planned."""
        self._supervisor = start.launch_supervisor(self.layout, tied=tied)
        start.await_supervisor(self.layout, self._supervisor)
