"""`kubectl lablet console`, `logs`, `forward` and `screen`: what a lablet has of these, by their names.

All end in kubectl itself, which has the terminal, the streams and the user's credentials. Several consoles at once are
a `wall`.
"""

import contextlib
import os
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterable, Sequence
from typing import Final, NoReturn

import click

from vkprovider.classroom.pods import LabletPod
from vkprovider.cli.shared.place import Place
from vkprovider.cli.shared.pods import LabletName, exec_arguments, find, named, ports_of
from vkprovider.lablet import names
from vkprovider.lablet.devices import Port
from vkprovider.platform.kube.client import KubeClient


def console(
    pod: str | None,
    device: str | None,
    *,
    learners: tuple[str, ...],
    selector: str,
    take_over: bool,
    watch: bool,
    place: Place,
) -> None:
    """Connect this terminal with the console of DEVICE of POD; Ctrl-] leaves it."""
    learners = tuple(dict.fromkeys(learners))
    if take_over and watch:
        raise click.UsageError("who watches does not type: --watch or --take-over, not both")
    if selector or len(learners) > 1:
        if not watch:
            raise click.UsageError("several consoles can be watched, not typed at: add --watch, or name one learner")
        if device is not None or (selector and learners):
            raise click.UsageError("name learners with -u, or select them with -l, not both; then the DEVICE alone")
        from vkprovider.cli.lablet.wall import watch_several  # noqa: PLC0415 (it needs this module)

        watch_several(learners, selector, pod, place)
        return
    wanted, device = named_with_device(pod, device, learners[0] if learners else None)
    if device is None:
        whose = f"-u {learners[0]}" if learners else "POD"
        raise click.UsageError(f"name a DEVICE as the last word; for those of the lab: kubectl lablet ports {whose}")

    async def work(kube: KubeClient, namespace: str) -> list[str]:
        found = await find(kube, namespace, wanted)
        return console_command(found, device, take_over=take_over, watch=watch, tty=sys.stdin.isatty())

    become_kubectl(place, place.run(work))


def named_with_device(pod: str | None, device: str | None, learner: str | None) -> tuple[LabletName, str | None]:
    """Return the target that a command line names as `POD [DEVICE]`, or as `-u LEARNER [DEVICE]`.

    Raises:
        UsageError: It names no lablet, or two.
    """
    if learner is None or device is not None:
        return named(pod, learner), device
    return named(None, learner), pod


def console_command(pod: LabletPod, device: str, *, take_over: bool, tty: bool, watch: bool = False) -> list[str]:
    """Return the arguments of kubectl; the provider finds the device, for one's label may be another's container.

    Who watches sends no input at all, so that nothing can be typed; kubectl ends at Ctrl-C.
    """
    words = names.console_command(device, take_over=take_over)
    how = [] if watch else ["-i", "-t"] if tty else ["-i"]
    return exec_arguments(pod, words, *how)


def logs(
    pod: str | None, device: str | None, *, learner: str | None, follow: bool, tail: int | None, place: Place
) -> None:
    """Print the story of POD, or the console log of its DEVICE."""
    wanted, device = named_with_device(pod, device, learner)

    async def work(kube: KubeClient, namespace: str) -> list[str]:
        return logs_command(await find(kube, namespace, wanted), device, follow=follow, tail=tail)

    become_kubectl(place, place.run(work))


def logs_command(pod: LabletPod, device: str | None, *, follow: bool, tail: int | None) -> list[str]:
    """Return the arguments of kubectl.

    Raises:
        ClickException: The Pod has no container for the device.
    """
    meta, there = pod.metadata, [container.name for container in pod.spec.containers]
    container = there[0] if device is None else names.container_name(device, set())
    if container not in there:
        raise click.ClickException(
            f"pod/{meta.name} has no container for device {device!r}, and so no log of it; it has: {', '.join(there)}. "
            f"For its console: kubectl lablet console {meta.name} {shlex.quote(device or '')}"
        )
    more = ["--follow"] * follow + ([f"--tail={tail}"] if tail is not None else [])
    return ["logs", "-n", meta.namespace, meta.name, "-c", container, *more]


def forward(pod: str, name: str, local: int | None, *, address: str | None, place: Place) -> None:
    """Forward the port LOCAL of this machine to the port NAME of POD, until Ctrl-C."""
    wanted = named(pod, None)

    async def work(kube: KubeClient, namespace: str) -> list[str]:
        found = await find(kube, namespace, wanted)
        return forward_command(found, ports_of(found, {}), name, local, address)

    become_kubectl(place, place.run(work))


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


_DISPLAYS: Final = range(5901, 6000)
"""The ports of this machine for a viewer, of which the first free one is taken."""


def screen(pod: str | None, device: str | None, *, learner: str | None, local: int | None, place: Place) -> None:
    """Lead VNC viewers on this machine to the screen of DEVICE of POD, until Ctrl-C."""
    wanted, device = named_with_device(pod, device, learner)
    if device is None:
        raise click.UsageError("name a DEVICE as the last word")

    async def work(kube: KubeClient, namespace: str) -> list[str]:
        found = await find(kube, namespace, wanted)
        return screen_command(found, ports_of(found, {}), device)

    command = kubectl_command(place, place.run(work))
    with _listening(_DISPLAYS if local is None else (local,)) as server, contextlib.suppress(KeyboardInterrupt):
        click.echo(f"vncviewer localhost:{server.getsockname()[1]}")
        while True:
            with server.accept()[0] as viewer:
                subprocess.Popen(command, stdin=viewer.fileno(), stdout=viewer.fileno())  # noqa: S603 (kubectl itself, which says on stderr why it ends)


def screen_command(pod: LabletPod, ports: Sequence[Port], device: str) -> list[str]:
    """Return the arguments of kubectl, whose input and output are then those of a VNC viewer.

    Raises:
        ClickException: The device has no screen.
    """
    shown = {port.device: port.container for port in ports if port.access == "vnc"}
    if device not in {*shown, *shown.values()}:
        known = ", ".join(sorted(shown)) or "none"
        raise click.ClickException(
            f"pod/{pod.metadata.name} has no device {device!r} with a tag `vnc:PORT` in its topology; with one: {known}"
        )
    return exec_arguments(pod, [names.SCREEN, device], "-i")


def _listening(ports: Iterable[int]) -> socket.socket:
    """Listen for viewers of this machine at the first port that is free.

    Raises:
        ClickException: None is.
    """
    why = ""
    for port in ports:
        try:
            return socket.create_server(("127.0.0.1", port))
        except OSError as error:
            why = f"port {port} of this machine: {error.strerror}; name another one by --local"
    raise click.ClickException(why)


def become_kubectl(place: Place, arguments: Sequence[str]) -> NoReturn:
    """Go on as kubectl, with the same cluster.

    Raises:
        ClickException: There is no kubectl.
    """
    command = kubectl_command(place, arguments)
    sys.stdout.flush()
    os.execv(command[0], command)  # noqa: S606 (kubectl itself, without a shell)


def kubectl_command(place: Place, arguments: Sequence[str]) -> list[str]:
    """Return the command that runs kubectl with the same cluster.

    Raises:
        ClickException: There is no kubectl.
    """
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        raise click.ClickException("kubectl is not on PATH; install it: https://kubernetes.io/docs/tasks/tools")
    cluster = [f"--kubeconfig={place.kubeconfig}"] if place.kubeconfig else []
    cluster += [f"--context={place.context}"] if place.context else []
    return [kubectl, *cluster, *arguments]
