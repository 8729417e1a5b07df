"""`kubectl lablet console` and `forward`: a device's console, and a port of a lablet, by their names.

Both end in kubectl itself, which has the terminal, the streams and the user's credentials.
"""

import os
import shutil
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from vkprovider.cli.shared.devices import Port, ports_of
from vkprovider.cli.shared.place import Place
from vkprovider.cli.shared.pods import LabletPod, pod_name, read
from vkprovider.kube.client import KubeClient


def console(pod: str, device: str, *, take_over: bool, place: Place) -> None:
    """Connect this terminal with the console of DEVICE of POD; Ctrl-] leaves it."""
    name = pod_name(pod)

    async def work(kube: KubeClient, namespace: str) -> list[str]:
        found = await read(kube, namespace, name)
        return console_command(found, device, take_over=take_over, tty=sys.stdin.isatty())

    _become_kubectl(place, place.run(work))


def console_command(pod: LabletPod, device: str, *, take_over: bool, tty: bool) -> list[str]:
    """Return the arguments of kubectl; the provider finds the device, for one's label may be another's container."""
    words = ["console", device, *(["--take-over"] if take_over else [])]
    how = ["-i", "-t"] if tty else ["-i"]
    meta = pod.metadata
    return ["exec", *how, "-n", meta.namespace, meta.name, "-c", pod.spec.containers[0].name, "--", *words]


def forward(pod: str, name: str, local: int | None, *, address: str | None, place: Place) -> None:
    """Forward the port LOCAL of this machine to the port NAME of POD, until Ctrl-C."""
    lablet = pod_name(pod)

    async def work(kube: KubeClient, namespace: str) -> list[str]:
        found = await read(kube, namespace, lablet)
        return forward_command(found, ports_of(found, {}), name, local, address)

    _become_kubectl(place, place.run(work))


def forward_command(
    pod: LabletPod, ports: Sequence[Port], name: str, local: int | None, address: str | None
) -> list[str]:
    """Return the arguments of kubectl.

    Raises:
        ClickException: The lablet has no such port, or none that can be forwarded.
    """
    meta = pod.metadata
    usable = [port for port in ports if port.can_be_forwarded]
    port = next((port for port in usable if port.name == name), None)
    if port is None:
        known = ", ".join(port.name for port in usable) or "none"
        raise click.ClickException(
            f"pod/{meta.name} has no port {name!r} that can be forwarded; it has: {known}. For all of them: "
            f"kubectl lablet ports {meta.name} -o wide"
        )
    pair = f"{port.port if local is None else local or ''}:{port.port}"
    where = ["--address", address] if address else []
    return ["port-forward", "-n", meta.namespace, *where, f"pod/{meta.name}", pair]


def _become_kubectl(place: Place, arguments: Sequence[str]) -> NoReturn:
    """Go on as kubectl, with the same cluster.

    Raises:
        ClickException: There is no kubectl.
    """
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        raise click.ClickException("kubectl is not on PATH; install it: https://kubernetes.io/docs/tasks/tools")
    cluster = [f"--kubeconfig={place.kubeconfig}"] if place.kubeconfig else []
    cluster += [f"--context={place.context}"] if place.context else []
    sys.stdout.flush()
    os.execv(kubectl, [kubectl, *cluster, *arguments])  # noqa: S606 (kubectl itself, without a shell)
