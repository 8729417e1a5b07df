"""Wait for the effect of processes; the error names the process that failed."""

import http.client
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final
from urllib.parse import urlsplit

import msgspec

from vkpsandbox.controlplane.kubectl import Kubectl
from vkpsandbox.errors import SandboxError, log_tail
from vkpsandbox.paths import Layout
from vkpsandbox.processes.control import request
from vkpsandbox.processes.process import ProcessStatus
from vkpsandbox.processes.record import Lds, Worker

START_S: Final = 180.0
"""How long processes may take to begin: on a machine that also builds each has a part of a core, and one that crashes
ends the wait before."""
CRASHES: Final = 3
"""A process that ends this often during a wait will not come up."""

POLL_S: Final = 0.05
KUBECTL_POLL_S: Final = 0.4
"""The pause between two questions by kubectl, each of which takes a tenth of a second of CPU from the awaited work."""

_READY: Final = '{range .items[*]}{.metadata.name}={.status.conditions[?(@.type=="Ready")].status} {end}'


def await_api(layout: Layout, server: str) -> None:
    """Wait until the API server is ready."""
    names = ["etcd", "kube-apiserver"]
    await_processes(layout, names, partial(_api_ready, layout, server), "the API")


def await_controllers(layout: Layout, kubectl: Kubectl) -> None:
    """Wait until the controllers work.

    The sign is the ServiceAccount `default` of the namespace `default`: without it no pod is admitted.
    """

    def account() -> bool:
        sign = ("get", "serviceaccount/default", "--namespace=default", "--ignore-not-found", "--output=name")
        return bool(kubectl(*sign).stdout)

    names = ["kube-controller-manager", "kube-scheduler"]
    await_processes(layout, names, account, "the controllers", poll_s=KUBECTL_POLL_S)


def await_workers(layout: Layout, workers: Sequence[Worker]) -> None:
    """Wait until all simulators listen."""
    for worker in workers:
        if worker.port:
            host = worker.url.removeprefix("https://").partition(":")[0]
            ready = partial(_listens, host, worker.port)
            await_processes(layout, [worker.process], ready, f"the simulator at {worker.url}")


def await_lds(layout: Layout, lds: Lds) -> None:
    """Wait until the simulated Lab Delivery System listens."""
    host, _, port = lds.url.removeprefix("http://").partition(":")
    ready = partial(_listens, host, int(port))
    await_processes(layout, [lds.process], ready, f"the simulator at {lds.url}")


def await_nodes(layout: Layout, kubectl: Kubectl, nodes: Sequence[str], providers: Sequence[str]) -> None:
    """Wait until all nodes are Ready."""
    wanted = {f"{node}=True" for node in nodes}

    def ready() -> bool:
        return wanted <= set(kubectl("get", "nodes", "-o", f"jsonpath={_READY}").stdout.split())

    if wanted:
        await_processes(layout, providers, ready, f"nodes {', '.join(nodes)}", poll_s=KUBECTL_POLL_S)


def await_page(layout: Layout, process: str, url: str) -> None:
    """Wait until a replica says on its page that it is ready."""
    await_processes(layout, [process], partial(_page_ready, url), f"{process} at {url}")


def await_processes(
    layout: Layout,
    names: Sequence[str],
    ready: Callable[[], bool],
    what: str,
    timeout_s: float = START_S,
    poll_s: float = POLL_S,
) -> None:
    """Wait until a condition holds that some processes bring about.

    Args:
        layout: The sandbox's files.
        names: Those processes.
        ready: Called again and again: whether the condition holds. A SandboxError counts as no.
        what: The condition, for messages.
        timeout_s: How long it may take.
        poll_s: The pause between two questions.

    Raises:
        SandboxError: If it takes too long, or one of them crashes again and again.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        late = time.monotonic() > deadline
        hint = "on a busy machine, try again later; else read the log"
        try:
            if ready():
                return
        except SandboxError as error:
            hint = str(error)
        table = msgspec.convert(request(layout, "ps")["processes"], list[ProcessStatus])
        for status in table:
            if status.name in names and status.restarts >= CRASHES:
                raise SandboxError(
                    f"{status.name} ended {status.restarts} times, last with exit code {status.exit_code}, "
                    f"while waiting for {what}\n{log_tail(layout.log(status.name))}"
                )
        if late:
            logs = "\n".join(log_tail(layout.log(name)) for name in names)
            running = f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} running"
            raise SandboxError(f"{what}: not ready after {timeout_s:.0f} s, although {running}: {hint}\n{logs}")
        time.sleep(poll_s)


def _listens(host: str, port: int) -> bool:
    """Return whether an address accepts connections."""
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        return False
    return True


def _api_ready(layout: Layout, server: str) -> bool:
    """Ask the API server whether it is ready; this needs no credentials."""
    context = ssl.create_default_context(cafile=str(layout.pki / "server-ca.crt"))
    return _is_ok(http.client.HTTPSConnection(urlsplit(server).netloc, timeout=5, context=context), "/readyz")


def _page_ready(url: str) -> bool:
    """Ask a replica whether it is ready."""
    return _is_ok(http.client.HTTPConnection(urlsplit(url).netloc, timeout=5), "/ready")


def _is_ok(connection: http.client.HTTPConnection, path: str) -> bool:
    """Return whether a path is answered with 200, and close the connection."""
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
