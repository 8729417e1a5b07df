"""`vkprovider sandbox`: a real control plane on this machine."""

import json
import shlex
import signal
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Final, Literal, ParamSpec, TypeVar

import click
import msgspec

from vkprovider.platform.errors import VkproviderError
from vkpsandbox import ProcessStatus, Sandbox
from vkpsandbox.controlplane.build import ensure_programs
from vkpsandbox.controlplane.tunnels import Tunnel
from vkpsandbox.errors import SandboxError
from vkpsandbox.node.programs import ensure_node_programs
from vkpsandbox.paths import sandboxes_home

P = ParamSpec("P")
R = TypeVar("R")

DOWNLOAD_HELP: Final = (
    "Download official programs of Kubernetes and etcd instead of building them, where there are none yet."
)


def _reported(command: Callable[P, R]) -> Callable[P, R]:
    """Print what went wrong instead of a traceback."""

    @wraps(command)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except VkproviderError as error:
            raise click.ClickException(str(error)) from error

    return wrapper


def _which(command: Callable[P, R]) -> Callable[P, R]:
    """Add the options that name a sandbox."""
    directory = click.option(
        "--dir", "directory", type=click.Path(path_type=Path), help="Its directory, unless it is the default one."
    )
    return click.option("--name", default="default", show_default=True, help="Which sandbox.")(directory(command))


@click.group()
def sandbox() -> None:
    """Run a real Kubernetes control plane with simulated CML workers on this machine."""


@sandbox.command()
@_which
@click.option("--workers", type=click.IntRange(0, 500), default=2, show_default=True, help="Simulated CML workers.")
@click.option("--replicas", type=click.IntRange(1, 20), default=1, show_default=True, help="Provider replicas.")
@click.option(
    "--backend",
    type=click.Choice(["cml", "null"]),
    default="cml",
    show_default=True,
    help="cml: a simulator per worker; null: the provider answers every lab operation itself, at once.",
)
@click.option(
    "--tunnel",
    type=click.Choice(["direct", "mqtt", "http"]),
    default="direct",
    show_default=True,
    help="How the provider reaches the workers: itself, or through an agent per worker, which dials a broker "
    "(mosquitto) or the provider.",
)
@click.option("--lds", is_flag=True, help="Run a simulated Lab Delivery System that the provider uses.")
@click.option("--mux", is_flag=True, help="Run a mux, the Service labs in vkprovider-system, and a relay on loopback.")
@click.option("--portal", is_flag=True, help="Run the portal; its users are the ServiceAccounts in namespace learners.")
@click.option("--node", is_flag=True, help="Run an ordinary Node for containers, too; needs root, containerd and more.")
@click.option("--audit", is_flag=True, help="Make the API server write an audit log.")
@click.option("--no-provider", is_flag=True, help="Do not run the provider.")
@click.option("--download", is_flag=True, help=DOWNLOAD_HELP)
@click.option(
    "--kubeconfig",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Use the cluster of this file's current context instead of starting a control plane.",
)
@_reported
def up(
    *,
    name: str,
    directory: Path | None,
    workers: int,
    replicas: int,
    backend: Literal["cml", "null"],
    tunnel: Tunnel,
    lds: bool,
    mux: bool,
    portal: bool,
    node: bool,
    audit: bool,
    no_provider: bool,
    download: bool,
    kubeconfig: Path | None,
) -> None:
    """Start a sandbox; returns when all nodes are Ready."""
    if audit and kubeconfig:
        raise click.UsageError(
            "--audit and --kubeconfig exclude each other: only a sandbox's own API server can be audited"
        )
    if download and kubeconfig:
        raise click.UsageError("--download and --kubeconfig exclude each other: no control plane is started")
    if node and kubeconfig:
        raise click.UsageError(
            "--node and --kubeconfig exclude each other: the cluster of that file has Nodes of its own"
        )
    if tunnel != "direct" and backend == "null":
        raise click.UsageError(f"--tunnel {tunnel} and --backend null exclude each other: a null worker has no agent")
    if tunnel == "http" and no_provider:
        raise click.UsageError("--tunnel http and --no-provider exclude each other: agents have no page to dial")
    made = Sandbox.up(
        name,
        directory=directory,
        workers=workers,
        replicas=replicas,
        backend=backend,
        tunnel=tunnel,
        lds=lds,
        mux=mux,
        portals=int(portal),
        node=node,
        audit=audit,
        provider=not no_provider,
        policies=True,
        kubeconfig=kubeconfig,
        download=download,
        on_progress=lambda line: click.echo(line, err=True),
    )
    click.echo(f"sandbox {name} is up; its kubeconfig is {made.kubeconfig}")
    if no_provider:
        click.echo(provider_hint(made.provider_kubeconfig))
    plugins = Path(sys.executable).parent  # of kubectl: kubectl-lablet
    click.echo(f"export KUBECONFIG={made.kubeconfig}; export PATH={made.programs}:{plugins}:$PATH")


def provider_hint(kubeconfig: Path) -> str:
    """Say how to run the provider oneself; without workers its ServiceAccount does not exist yet."""
    if kubeconfig.exists():
        own = shlex.quote(str(kubeconfig))
        return f"run the provider, as its ServiceAccount, with: KUBECONFIG={own} vkprovider run"
    return "the cluster is empty: install vkprovider, then run it outside of the cluster, both as docs/install.md says"


@sandbox.command()
@_which
@_reported
def down(name: str, directory: Path | None) -> None:
    """End a sandbox and remove all its processes and files."""
    Sandbox.remove(name, directory, lambda line: click.echo(line, err=True))
    click.echo(f"sandbox {name} is gone")


@sandbox.command()
@_which
@click.argument("archive", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@_reported
def load(name: str, directory: Path | None, archive: Path) -> None:
    """Give the ordinary Node the images of an archive, as `podman save` and `docker save` write it."""
    click.echo(Sandbox.attach(name, directory).load(archive), nl=False)


@sandbox.command("list")
@_reported
def list_sandboxes() -> None:
    """List the sandboxes that have the default directory: name, processes that run, kubeconfig."""
    rows = [("NAME", "RUNNING", "KUBECONFIG")]
    for folder in sorted(sandboxes_home().glob("*/")):
        try:
            found = Sandbox.attach(folder.name)
        except SandboxError:
            continue  # none, or one that is just being made or removed
        states = [process.state for process in found.processes()]
        rows.append((found.name, f"{states.count('running')}/{len(states)}", str(found.kubeconfig)))
    _table(rows)


def _table(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


@sandbox.command()
@_which
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
@_reported
def ps(name: str, directory: Path | None, output: str) -> None:
    """List the processes of a sandbox: name, pid, url, log (and the API server's audit_log)."""
    found = Sandbox.attach(name, directory)
    table = found.processes()
    if output == "json":
        click.echo(json.dumps([_entry(found, status) for status in table], indent=2))
        return
    click.echo(f"sandbox     {found.name} in {found.directory}")
    click.echo(f"kubeconfig  {found.kubeconfig}")
    if found.audit_log:
        click.echo(f"audit log   {found.audit_log}")
    rows = [("NAME", "PID", "STATE", "RESTARTS", "URL", "LOG")]
    rows += [(s.name, str(s.pid or "-"), s.state, str(s.restarts), s.url, s.log) for s in table]
    _table(rows)


@sandbox.command()
@_which
@click.argument("process")
@click.option("-n", "--lines", type=click.IntRange(min=1), help="Only the last lines.")
@_reported
def logs(name: str, directory: Path | None, process: str, lines: int | None) -> None:
    """Print the log of a process."""
    found = Sandbox.attach(name, directory)
    log = found.layout.log(process)
    if process != "supervisor":
        log = Path(found.process(process).log)
    try:
        with log.open(errors="replace") as text:
            sys.stdout.writelines(text if lines is None else text.readlines()[-lines:])
    except OSError as error:
        raise click.ClickException(f"the log of {process} cannot be read: {error}") from error


@sandbox.command()
@click.option("--node", is_flag=True, help="Those of an ordinary Node, too.")
@_reported
def build(*, node: bool) -> None:
    """Build the control plane's programs now and print where they are."""
    click.echo(ensure_programs(_tell))
    if node:
        click.echo("\n".join(sorted({str(path.parent) for path in ensure_node_programs(_tell).values()})))


def _tell(line: str) -> None:
    """Print a line of progress."""
    click.echo(line, err=True)


@sandbox.command()
@_which
@click.argument("process")
@click.option("--grace", "grace_s", type=click.FloatRange(0, 300), default=5, show_default=True, help="Seconds.")
@_reported
def stop(name: str, directory: Path | None, process: str, grace_s: float) -> None:
    """End a process and keep it down until `start`."""
    _show(Sandbox.attach(name, directory).stop(process, grace_s=grace_s))


@sandbox.command()
@_which
@click.argument("process")
@_reported
def start(name: str, directory: Path | None, process: str) -> None:
    """Start a stopped or killed process."""
    _show(Sandbox.attach(name, directory).start(process))


@sandbox.command()
@_which
@click.argument("process")
@click.option("--signal", "number", default="KILL", show_default=True, help="Signal name or number: KILL, STOP, 15.")
@_reported
def kill(name: str, directory: Path | None, process: str, number: str) -> None:
    """Send a signal to a process.

    Control-plane processes are restarted after a deadly signal; workers and provider replicas stay down.
    """
    _show(Sandbox.attach(name, directory).kill(process, _signal(number)))


def _signal(text: str) -> signal.Signals:
    """Parse a signal's name or number."""
    try:
        return signal.Signals(int(text)) if text.isdigit() else signal.Signals["SIG" + text.upper().removeprefix("SIG")]
    except (KeyError, ValueError) as error:
        raise click.BadParameter(f"there is no signal {text}: see `kill -l`", param_hint="--signal") from error


def _entry(found: Sandbox, status: ProcessStatus) -> dict[str, object]:
    """Return a process as `ps -o json` shows it."""
    entry: dict[str, object] = msgspec.to_builtins(status)
    if found.audit_log and status.name == "kube-apiserver":
        entry["audit_log"] = str(found.audit_log)
    return entry


def _show(status: ProcessStatus) -> None:
    """Print a process's status after a command."""
    detail = f"pid {status.pid}" if status.pid else f"last exit code {status.exit_code}"
    click.echo(f"{status.name}: {status.state} ({detail})")
