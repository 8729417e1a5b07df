"""The steps of `sandbox up`, in order."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

import vkprovider
from vkprovider.platform.shipped import find_manifests
from vkpsandbox.controlplane import components, content, muxes, portal, programs, tunnels, waiting
from vkpsandbox.controlplane.kubectl import Kubectl
from vkpsandbox.controlplane.pki import write_pki
from vkpsandbox.controlplane.relay import HAPROXY
from vkpsandbox.errors import SandboxError, log_tail
from vkpsandbox.node import components as node_parts
from vkpsandbox.node import needs, network, room, runtime
from vkpsandbox.paths import STARTS_VARIABLE, Layout
from vkpsandbox.processes.control import request
from vkpsandbox.processes.ports import free_ports
from vkpsandbox.processes.process import OWNER_VARIABLE, ProcessSpec, environment, write_atomically
from vkpsandbox.processes.record import Lds, OrdinaryNode, Record


def plan_control_plane(layout: Layout, binaries: Path, record: Record, tuning: components.Tuning) -> components.Ports:
    """Write keys, kubeconfigs and the plan with etcd and the API server; return the ports that were free."""
    if counted := os.environ.get(STARTS_VARIABLE):
        with Path(counted).open("a") as starts:
            starts.write(f"{os.environ.get('PYTEST_CURRENT_TEST', '')}\n")
    given: list[int] = []
    host = components.LOOPBACK
    if record.node:
        host, given = record.node.host, [components.API_PORT]
        write_pki(layout.pki, host=host, clients={node_parts.KUBELET_CLIENT: node_parts.client_of(record.node)})
    else:
        write_pki(layout.pki)
    api, etcd, peer, scheduler, manager = given + free_ports(components.PORTS_NEEDED - len(given))
    ports = components.Ports(api, etcd, peer, scheduler, manager, host)
    components.write_kubeconfigs(layout, ports.server, record.context)
    layout.audit_policy.write_text(components.AUDIT_POLICY)
    specs = [tuning.applied_to(spec) for spec in components.store_and_api(layout, binaries, ports, audit=record.audit)]
    # It has the address at which the API server listens.
    _write_plan(layout, [room.room_process(layout, record.node), *specs] if record.node else specs)
    return ports


def plan_foreign(layout: Layout, kubectl: Kubectl, kubeconfig: Path) -> str:
    """Copy the current context of a kubeconfig, write an empty plan, and return the context's name."""
    view = ("config", "view", f"--kubeconfig={kubeconfig.absolute()}", "--raw", "--flatten", "--minify")
    write_atomically(layout.kubeconfig, kubectl(*view).stdout.encode())
    _write_plan(layout, [])
    return kubectl("config", "current-context").stdout.strip()


def launch_supervisor(layout: Layout, *, tied: bool) -> subprocess.Popen[bytes]:
    """Start the supervisor in a new session."""
    package_home = str(Path(vkprovider.__file__).parent.parent)
    python_path = os.pathsep.join(filter(None, [package_home, os.environ.get("PYTHONPATH")]))
    changes = {"PYTHONPATH": python_path, OWNER_VARIABLE: str(os.getpid()) if tied else None}
    with layout.log("supervisor").open("ab") as output:
        return subprocess.Popen(  # noqa: S603 (ourselves)
            [sys.executable, "-P", "-m", "vkpsandbox.processes.supervisor", str(layout.directory)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=layout.directory,
            env=environment(os.environ, changes, layout.directory),
            start_new_session=True,
        )


def await_supervisor(layout: Layout, supervisor: subprocess.Popen[bytes]) -> None:
    """Wait until the supervisor answers.

    Raises:
        SandboxError: If it ends.
    """
    while not _answers(layout):
        if supervisor.poll() is not None:
            log = log_tail(layout.log("supervisor"))
            raise SandboxError(f"the supervisor ended with {supervisor.returncode}\n{log}")
        time.sleep(waiting.POLL_S)


def _answers(layout: Layout) -> bool:
    """Return whether the supervisor answers; its socket exists a moment before it listens."""
    try:
        request(layout, "ps")
    except SandboxError:
        return False
    return True


def finish_control_plane(
    layout: Layout,
    binaries: Path,
    ports: components.Ports,
    kubectl: Kubectl,
    tuning: components.Tuning,
    *,
    controllers: bool,
) -> None:
    """Wait for the API server; then, if wanted, start scheduler and controller-manager and wait until they work."""
    waiting.await_api(layout, ports.server)
    if not controllers:
        return
    add_process(layout, tuning.applied_to(components.controller_manager(layout, binaries, ports)))
    add_process(layout, tuning.applied_to(components.scheduler(layout, binaries, ports)))
    waiting.await_controllers(layout, kubectl)


def create_workers(
    layout: Layout,
    kubectl: Kubectl,
    record: Record,
    worker_args: Sequence[Sequence[str]],
    spec: Mapping[str, Any],
    *,
    policies: bool = False,
) -> None:
    """Start the simulators, and apply what the provider needs to the cluster."""
    manifests = find_manifests()
    for number, worker in enumerate(record.workers):
        if worker.port:
            arguments = worker_args[number % len(worker_args)]
            add_process(layout, programs.worker_process(layout, worker, arguments))
    if record.broker:
        add_process(layout, tunnels.broker_process(layout, record.broker, manifests))
    content.apply_manifests(kubectl, manifests)
    if policies:
        content.apply_policies(kubectl, manifests)
    content.apply_workers(kubectl, record.workers, record.name, {"tunnel": record.tunnel, **spec})
    content.write_provider_kubeconfig(kubectl, layout, record.name)
    waiting.await_workers(layout, record.workers)


def plan_node(layout: Layout) -> OrdinaryNode:
    """Choose the number of an ordinary Node, and make its link.

    Raises:
        SandboxError: There is no number left, or no interface can be made.
    """
    layout.node.mkdir(mode=0o700)
    return network.claim(layout)


def start_node(layout: Layout, kubectl: Kubectl, node: OrdinaryNode, built: Mapping[str, Path]) -> None:
    """Start containerd and all else of an ordinary Node, and wait until it is Ready.

    Args:
        layout: The sandbox's files.
        kubectl: As admin.
        node: Its Node.
        built: The programs of `vkpsandbox.node.programs`.
    """
    entered = partial(room.inside, layout)
    waiting.await_processes(
        layout, [room.PROCESS], lambda: room.pid_of(layout) is not None, "the namespaces of the Node"
    )
    add_process(layout, _within(entered, runtime.containerd_process(layout, node)))
    waiting.await_processes(layout, [runtime.PROCESS], lambda: runtime.is_up(layout), "containerd")
    runtime.load_pause(layout)
    specs = node_parts.node_processes(layout, kubectl, node, built)
    for spec in specs:  # the kubelet first: the others end where there is no Node yet
        add_process(layout, _within(entered, spec))
        waiting.await_nodes(layout, kubectl, [node.name], [spec.name])


def _within(entered: Callable[[Sequence[str]], list[str]], spec: ProcessSpec) -> ProcessSpec:
    """Return a process that runs inside of the namespaces."""
    path = {"PATH": needs.search_path()}
    return msgspec.structs.replace(spec, argv=entered(spec.argv), env={**spec.env, **path})


def plan_providers(layout: Layout, record: Record, replicas: int, settings: Mapping[str, str]) -> list[ProcessSpec]:
    """Return the process specs of the provider replicas."""
    settings = {
        **(programs.lds_settings(record.lds) if record.lds else {}),
        **tunnels.replica_settings(record),
        **settings,
    }
    specs = [programs.provider_process(layout.provider_kubeconfig, n, settings) for n in range(1, replicas + 1)]
    return [tunnels.dialled(spec) for spec in specs] if record.tunnel == "http" else specs


def start_agents(
    layout: Layout, record: Record, providers: Sequence[ProcessSpec], worker_spec: Mapping[str, Any]
) -> None:
    """Start an agent beside each worker, where the provider needs them."""
    ports = worker_spec.get("portRange", content.PORT_RANGE)
    for worker in record.workers if record.tunnel != "direct" else ():
        add_process(layout, tunnels.agent_process(layout, record, worker, providers, ports))


def start_lds(layout: Layout, lds: Lds, providers: Sequence[ProcessSpec], arguments: Sequence[str]) -> None:
    """Start the simulated Lab Delivery System and wait until it listens."""
    add_process(layout, programs.lds_process(layout, lds, providers, arguments))
    waiting.await_lds(layout, lds)


def start_mux(layout: Layout, kubectl: Kubectl, record: Record) -> str:
    """Start what serves a mux; return the first and the last port of its HAProxy."""
    specs = muxes.mux_processes(layout, kubectl, find_manifests(), record.workers)
    for spec in specs:
        add_process(layout, spec)
    return next(spec.url for spec in specs if spec.name == HAPROXY)


def start_portal(layout: Layout, kubectl: Kubectl, replicas: int, settings: Mapping[str, str]) -> list[str]:
    """Start the replicas of the portal and wait until they are ready; return their URLs."""
    specs = portal.portal_processes(layout, kubectl, find_manifests(), replicas, settings)
    for spec in specs:
        add_process(layout, spec)
    for spec in specs:
        waiting.await_page(layout, spec.name, spec.url)
    return [spec.url for spec in specs]


def start_providers(layout: Layout, kubectl: Kubectl, record: Record, specs: Sequence[ProcessSpec]) -> None:
    """Start the provider replicas and wait until all nodes are Ready."""
    for spec in specs:
        add_process(layout, spec)
    waiting.await_nodes(layout, kubectl, [worker.node for worker in record.workers], [spec.name for spec in specs])


def add_process(layout: Layout, spec: ProcessSpec) -> None:
    """Make the supervisor start one more process."""
    request(layout, "add", spec=msgspec.to_builtins(spec))


def _write_plan(layout: Layout, specs: list[ProcessSpec]) -> None:
    """Write what the supervisor starts first."""
    write_atomically(layout.plan, msgspec.json.encode(specs))
