"""`kubectl lablet`: a kubectl plugin, found by its name `kubectl-lablet` on PATH."""

import asyncio
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

import click
import msgspec

from vkprovider import __version__
from vkprovider.api import names
from vkprovider.api.errors import InputError, OutsideError
from vkprovider.api.reasons import WORKERS
from vkprovider.cli.cluster import cluster_options
from vkprovider.cli.lablet_acts import collect, reset, start, stop
from vkprovider.cli.lablet_approve import approve
from vkprovider.cli.lablet_assign import assign
from vkprovider.cli.lablet_configs import configs
from vkprovider.cli.lablet_console import console, forward
from vkprovider.cli.lablet_login import login
from vkprovider.cli.lablet_pods import NONE, LabletPod, aligned, pods_in, why
from vkprovider.cli.lablet_ports import ports
from vkprovider.cli.lablet_refresh import refresh_definition
from vkprovider.cli.lablet_release import release
from vkprovider.domain.definition.status import DIGEST_CHARS
from vkprovider.domain.lablet.pod.intent import tag_of
from vkprovider.kube.client import KubeClient
from vkprovider.settings.cluster import KubeSettings

_HEADINGS: Final = ("NAMESPACE", "NAME", "DEFINITION", "VERSION", "STATE", "READY", "WORKER", "LAB", "AGE", "USER")
_WIDE: Final = (*_HEADINGS, "ADDRESS", "CONTENT", "REASON")


class Row(msgspec.Struct, frozen=True):
    """One lablet, as `-o json` shows it; what is unknown is empty."""

    namespace: str
    name: str
    definition: str
    version: str
    state: str
    ready: bool
    worker: str
    lab: str
    created: str
    user: str
    address: str
    digest: str
    reason: str
    message: str


_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 365 * 86400
_AGES: Final = (
    (2 * _MINUTE, 1, "s", 0, ""),
    (10 * _MINUTE, _MINUTE, "m", 1, "s"),
    (3 * _HOUR, _MINUTE, "m", 0, ""),
    (8 * _HOUR, _HOUR, "h", _MINUTE, "m"),
    (2 * _DAY, _HOUR, "h", 0, ""),
    (8 * _DAY, _DAY, "d", _HOUR, "h"),
    (2 * _YEAR, _DAY, "d", 0, ""),
    (8 * _YEAR, _YEAR, "y", _DAY, "d"),
    (float("inf"), _YEAR, "y", 0, ""),
)
"""Up to that many seconds: whole units, and the rest in smaller ones. As `duration.HumanDuration` of k8s.io."""


def row_of(pod: LabletPod) -> Row:
    """Return what a Pod reports about its lablet."""
    meta, status, notes = pod.metadata, pod.status, pod.metadata.annotations
    tag = next((tag_of(container.image)[1] for container in pod.spec.containers), "")
    reason, message = why(pod)
    version, _, digest = notes.get(names.ANNOTATION_CONTENT, "").partition("@")
    return Row(
        namespace=meta.namespace,
        name=meta.name,
        definition=pod.spec.runtime_class_name,
        version=version or tag,
        state=notes.get(names.ANNOTATION_STATE, "") or "PENDING",
        ready=pod.ready,
        worker=names.worker_of(pod.spec.node_name) or "",
        lab=notes.get(names.ANNOTATION_LAB_ID, ""),
        created=meta.creation_timestamp,
        user=pod.user,
        address=status.pod_ip,
        digest=digest.removeprefix("sha256:"),
        reason=reason,
        message=message,
    )


def age(created: str, now: datetime) -> str:
    """Format an age as kubectl does: the largest unit, and the next one while the first is small.

    >>> age("2026-01-01T00:00:00Z", datetime(2026, 1, 1, 2, 5, tzinfo=UTC))
    '125m'
    """
    try:
        seconds = int((now - datetime.fromisoformat(created)).total_seconds())
    except ValueError:
        return "<unknown>"
    seconds = max(0, seconds)
    _, unit_s, unit, rest_s, rest_unit = next(step for step in _AGES if seconds < step[0])
    rest = seconds % unit_s // rest_s if rest_s else 0
    return f"{seconds // unit_s}{unit}{rest}{rest_unit}" if rest else f"{seconds // unit_s}{unit}"


def table(rows: Sequence[Row], now: datetime, *, wide: bool) -> str:
    """Format rows as a table."""
    lines: list[tuple[str, ...]] = [_WIDE if wide else _HEADINGS]
    for row in rows:
        state = row.reason if row.reason in WORKERS else row.state  # what is reported is as old as its silence
        cells = [row.namespace, row.name, row.definition, row.version or NONE, state, str(row.ready)]
        cells += [row.worker or NONE, row.lab or NONE, age(row.created, now), row.user or NONE]
        further = [row.address or NONE, row.digest[:DIGEST_CHARS] or NONE, row.reason or NONE]
        lines.append((*cells, *(further if wide else ())))
    return aligned(lines)


@click.group(name="kubectl lablet", context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="kubectl lablet")
def main() -> None:
    """Show and operate lablets: labs of Cisco Modeling Labs that run as pods."""


@main.command("list")
@cluster_options
@click.option("-n", "--namespace", help="Namespace (default: the context's).")
@click.option("-A", "--all-namespaces", is_flag=True, help="In all namespaces.")
@click.option("-l", "--selector", default="", help="Label selector, such as app=netlab.")
@click.option("-o", "--output", type=click.Choice(["wide", "json", "name"]), help="Output format (default: table).")
def list_lablets(
    kubeconfig: str | None,
    context: str | None,
    namespace: str | None,
    all_namespaces: bool,  # noqa: FBT001 (click passes flags so)
    selector: str,
    output: str | None,
) -> None:
    """List lablets: definition, version, state, worker, lab and user of each."""
    if namespace and all_namespaces:
        raise click.UsageError("--namespace and --all-namespaces exclude each other")
    try:
        where, pods = asyncio.run(_pods(kubeconfig, context, namespace, selector, everywhere=all_namespaces))
    except (InputError, OutsideError) as error:
        raise click.ClickException(str(error)) from None
    rows = sorted((row_of(pod) for pod in pods if pod.is_lablet), key=lambda row: (row.namespace, row.name))
    match output:
        case "json":
            click.echo(msgspec.json.format(msgspec.json.encode(rows), indent=2))
        case "name":
            for row in rows:
                click.echo(f"pod/{row.name}")
        case _ if rows:
            click.echo(table(rows, datetime.now(UTC), wide=output == "wide"))
        case _:
            click.echo(f"No lablets found{f' in {where} namespace' if where else ''}.", file=sys.stderr)


async def _pods(
    kubeconfig: str | None, context: str | None, namespace: str | None, selector: str, *, everywhere: bool
) -> tuple[str, list[LabletPod]]:
    """List Pods; return their namespace too.

    Raises:
        InputError: The kubeconfig is missing or wrong.
        OutsideError: The API server refused or did not answer.
    """
    kube = await KubeClient.connect(KubeSettings(kubeconfig=kubeconfig), context=context)
    try:
        where = "" if everywhere else namespace or kube.namespace
        return where, await pods_in(kube, where).list(labels=selector)
    finally:
        await kube.close()


_READS: Final = (ports, console, forward, configs, login)
_ACTS: Final = (assign, release, stop, start, collect, reset, refresh_definition, approve)
for command in (*_READS, *_ACTS):
    main.add_command(command)

if __name__ == "__main__":
    main()
