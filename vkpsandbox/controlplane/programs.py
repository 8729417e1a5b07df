"""The command lines of simulators and provider replicas."""

import secrets
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

from vkprovider.platform.wellknown import GROUP
from vkpsandbox.controlplane.components import ISSUER
from vkpsandbox.controlplane.content import NAMESPACE
from vkpsandbox.paths import Layout
from vkpsandbox.processes.ports import free_ports, worker_endpoints, worker_public_address
from vkpsandbox.processes.process import ProcessSpec, Restart
from vkpsandbox.processes.record import Lds, OrdinaryNode, Worker

Backend = Literal["cml", "null"]

VKPROVIDER: Final = (sys.executable, "-P", "-m", "vkprovider")

EVENTS_PATH: Final = "/events"
"""Path at which a provider replica receives events of the Lab Delivery System."""

PATTY: Final = ("--patty",)
"""Argument that opens ports for tags; only for a worker that shares its address with no other worker."""

WORKER_GRACE_S: Final = 1.0
PROVIDER_GRACE_S: Final = 5.0


def plan_workers(layout: Layout, count: int, backend: Backend, node: OrdinaryNode | None = None) -> list[Worker]:
    """Choose the names and addresses of the simulated workers; those of the null backend listen nowhere.

    Raises:
        SandboxError: They are beside an ordinary Node, and more than have room there.
    """
    endpoints = [("", 0)] * count
    if backend == "cml":
        endpoints = node.worker_endpoints(count) if node else worker_endpoints(count)
    workers = []
    for number, (host, port) in enumerate(endpoints, 1):
        name = f"worker-{number}"
        workers.append(
            Worker(
                name=name,
                url=f"https://{host}:{port}" if port else f"null://{name}",
                address=worker_public_address(number),
                username="vkprovider",
                password=f"sandbox-{name}",
                port=port,
                access_log=str(layout.workers / f"{name}.access.jsonl") if port else "",
            )
        )
    return workers


def worker_process(layout: Layout, worker: Worker, arguments: Sequence[str]) -> ProcessSpec:
    """Return the command line of a simulated worker.

    Args:
        layout: The sandbox's files; the worker keeps its state there, so that it survives its own restart.
        worker: The worker.
        arguments: Further arguments of `vkprovider sim cml`; they override the defaults.
    """
    argv = [
        *VKPROVIDER,
        "sim",
        "cml",
        f"--listen={worker.url.removeprefix('https://')}",
        "--tls",
        f"--username={worker.username}",
        f"--state={layout.workers / worker.name}.state",
        f"--access-log={worker.access_log}",
        *(() if worker.url.startswith("https://127.0.0.1:") else PATTY),
        *arguments,
    ]
    return ProcessSpec(
        name=worker.process,
        argv=argv,
        env={"VKPROVIDER_SIM_PASSWORD": worker.password},
        url=worker.url,
        restart=Restart.UNLESS_KILLED,
        grace_s=WORKER_GRACE_S,
    )


def plan_lds(layout: Layout) -> Lds:
    """Choose the address of the simulated Lab Delivery System, and its secrets."""
    [port] = free_ports(1)
    return Lds(
        url=f"http://127.0.0.1:{port}",
        token=secrets.token_urlsafe(18),
        events_secret=secrets.token_urlsafe(18),
        access_log=str(layout.workers / "lds.access.jsonl"),
    )


def lds_process(layout: Layout, lds: Lds, providers: Sequence[ProcessSpec], arguments: Sequence[str]) -> ProcessSpec:
    """Return the command line of the simulated Lab Delivery System.

    Args:
        layout: The sandbox's files; it keeps its state there, so that it survives its own restart.
        lds: What it is.
        providers: The replicas that its events go to, each in turn.
        arguments: Further arguments of `vkprovider sim lds`; they override the defaults.
    """
    argv = [
        *VKPROVIDER,
        "sim",
        "lds",
        f"--listen={lds.url.removeprefix('http://')}",
        f"--state={layout.workers / 'lds.state'}",
        f"--access-log={lds.access_log}",
        *(f"--target={provider.url}{EVENTS_PATH}" for provider in providers),
        *arguments,
    ]
    return ProcessSpec(
        name=lds.process,
        argv=argv,
        env={"VKPROVIDER_SIM_LDS_TOKEN": lds.token, "VKPROVIDER_SIM_LDS_EVENT_TOKEN": lds.events_secret},
        url=lds.url,
        restart=Restart.UNLESS_KILLED,
        grace_s=WORKER_GRACE_S,
    )


def lds_settings(lds: Lds) -> dict[str, str]:
    """Return the settings with which a provider replica uses the Lab Delivery System."""
    return {
        "LDS_API_URL": lds.url,
        "LDS_API_TOKEN": lds.token,
        "VKPROVIDER_EVENTS_SECRET": lds.events_secret,
        "VKPROVIDER_GRADER_URL": f"{lds.url}/grade",
        "VKPROVIDER_GRADER_TOKEN": lds.token,
    }


def provider_process(kubeconfig: Path, number: int, settings: Mapping[str, str]) -> ProcessSpec:
    """Return the command line of a provider replica.

    Args:
        kubeconfig: Its own, never the admin's.
        number: Counted from 1.
        settings: Further environment variables; they override the defaults.
    """
    [port] = free_ports(1)
    env: dict[str, str | None] = {
        "KUBECONFIG": str(kubeconfig),
        "VKPROVIDER_NAMESPACE": NAMESPACE,
        "VKPROVIDER_HTTP_HOST": "127.0.0.1",
        "VKPROVIDER_HTTP_PORT": str(port),
        "VKPROVIDER_HTTP_AUDIENCES": f"{GROUP} {ISSUER}",  # the kubeconfig of the sandbox is enough
        "VKPROVIDER_PAGE_URL": f"http://127.0.0.1:{port}",
        "VKPROVIDER_INTERNAL_IP": "127.0.0.1",
        "VKPROVIDER_KUBELET_HOST": "127.0.0.1",
        "VKPROVIDER_KUBELET_PORTS": "0",
        "VKPROVIDER_KUBELET_CERTIFICATE": "self-signed",
        "LABLET_CONTROLLER_INSTANCE_ID": None,
        **settings,
    }
    return ProcessSpec(
        name=f"provider-{number}",
        argv=[*VKPROVIDER, "run"],
        env=env,
        url=f"http://127.0.0.1:{port}",
        restart=Restart.UNLESS_KILLED,
        grace_s=PROVIDER_GRACE_S,
    )
