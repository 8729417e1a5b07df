"""The command lines of our own processes: simulated workers and provider replicas."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

from vkprovider.sandbox.content import NAMESPACE
from vkprovider.sandbox.paths import Layout
from vkprovider.sandbox.ports import can_listen, free_ports, worker_listen_address, worker_public_address
from vkprovider.sandbox.process import ProcessSpec, Restart
from vkprovider.sandbox.record import Worker

Backend = Literal["cml", "null"]

OURSELVES: Final = (sys.executable, "-P", "-m", "vkprovider")

WORKER_GRACE_S: Final = 1.0
PROVIDER_GRACE_S: Final = 5.0


def plan_workers(layout: Layout, count: int, backend: Backend) -> list[Worker]:
    """Choose names, addresses and free ports of the simulated workers."""
    workers = []
    for number in range(1, count + 1):
        name = f"worker-{number}"
        host = worker_listen_address(number)
        port = 0
        if backend == "cml":
            host = host if can_listen(host) else "127.0.0.1"
            [port] = free_ports(1, host)
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
        arguments: Further arguments of `vkprovider sim cml`; they win over ours.
    """
    argv = [
        *OURSELVES,
        "sim",
        "cml",
        f"--listen={worker.url.removeprefix('https://')}",
        "--tls",
        f"--username={worker.username}",
        f"--state={layout.workers / worker.name}.state",
        f"--access-log={worker.access_log}",
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


def provider_process(kubeconfig: Path, number: int, settings: Mapping[str, str]) -> ProcessSpec:
    """Return the command line of a provider replica.

    Args:
        kubeconfig: Its own, never the admin's.
        number: Counted from 1.
        settings: Further environment variables; they win over ours.
    """
    [port] = free_ports(1)
    env: dict[str, str | None] = {
        "KUBECONFIG": str(kubeconfig),
        "VKPROVIDER_NAMESPACE": NAMESPACE,
        "VKPROVIDER_HTTP_PORT": str(port),
        "LABLET_CONTROLLER_INSTANCE_ID": None,
        **settings,
    }
    return ProcessSpec(
        name=f"provider-{number}",
        argv=[*OURSELVES, "run"],
        env=env,
        url=f"http://127.0.0.1:{port}",
        restart=Restart.UNLESS_KILLED,
        grace_s=PROVIDER_GRACE_S,
    )
