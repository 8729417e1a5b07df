"""`kubectl lablet refresh`: request a refresh of a definition's content, and wait for the outcome."""

import asyncio
from datetime import UTC, datetime
from typing import Any, Final

import click
import msgspec

from vkprovider.api import names
from vkprovider.api.errors import InputError, NotFound, OutsideError
from vkprovider.api.objects import CustomResource
from vkprovider.cli.cluster import cluster_options
from vkprovider.cli.lablet_times import duration
from vkprovider.domain.definition import refresh
from vkprovider.kube.api import Api
from vkprovider.kube.client import KubeClient
from vkprovider.settings.cluster import KubeSettings

_LOOK_EVERY_S: Final = 0.3
_KINDS: Final = frozenset({"ldef", "labletdefinition", "labletdefinitions"})
_encode: Final = msgspec.json.encode


class Refreshed(msgspec.Struct, frozen=True, rename="camel"):
    """The outcome of a refresh, as `-o json` shows it."""

    definition: str
    result: str
    version: str
    devices: int
    refreshed_by: str
    reason: str
    message: str


class Unanswered(Exception):  # noqa: N818 (a state)
    """There is no outcome in time; the message says what is known."""


@click.command("refresh")
@click.argument("name")
@click.option("--force", is_flag=True, help="Adopt the content even if its version is the current one.")
@click.option("--wait/--no-wait", default=True, help="Whether to wait for the outcome.")
@click.option(
    "--timeout",
    "timeout_s",
    callback=duration,
    default="2m",
    show_default=True,
    metavar="DURATION",
    help="How long to wait: 90s, 5m.",
)
@click.option("-o", "--output", type=click.Choice(["json"]), help="Output format (default: a sentence).")
@cluster_options
def refresh_definition(
    name: str,
    kubeconfig: str | None,
    context: str | None,
    timeout_s: int,
    output: str | None,
    *,
    force: bool,
    wait: bool,
) -> None:
    """Read the content of LabletDefinition NAME again, from its object store or ConfigMap.

    New pods use the new content; running lablets keep theirs.
    """
    name = definition_name(name)
    try:
        answer = asyncio.run(_refresh(kubeconfig, context, name, force=force, timeout_s=timeout_s if wait else 0))
    except (InputError, OutsideError, Unanswered) as error:
        raise click.ClickException(str(error)) from None
    if answer is None:
        click.echo(f"labletdefinition/{name}: refresh requested")
    elif output == "json":
        click.echo(msgspec.json.format(_encode(answer), indent=2))
    elif answer.result != "Refused":
        click.echo(f"labletdefinition/{name}: {answer.message}")
    if answer is not None and answer.result == "Refused":
        raise click.ClickException(f"labletdefinition/{name} keeps what it has: {answer.reason}: {answer.message}")


def definition_name(text: str) -> str:
    """Return the definition's name: `ldef/a`, `labletdefinitions/a` and `a` all name the LabletDefinition a.

    Raises:
        UsageError: It does not name a LabletDefinition.
    """
    kind, slash, name = text.rpartition("/")
    if not name or (slash and kind.partition(".")[0].lower() not in _KINDS):
        raise click.UsageError(f"{text!r} does not name a LabletDefinition; write {name or 'NAME'}, or ldef/NAME")
    return name


async def _refresh(
    kubeconfig: str | None, context: str | None, name: str, *, force: bool, timeout_s: int
) -> Refreshed | None:
    """Request a refresh in the caller's name; return its outcome, None without `timeout_s`.

    Raises:
        InputError: The kubeconfig is missing or wrong.
        OutsideError: The API server refused or did not answer.
        Unanswered: There is no outcome yet.
    """
    kube = await KubeClient.connect(KubeSettings(kubeconfig=kubeconfig), context=context)
    try:
        caller = (await Api(kube, kube.namespace).review_self()).status.user_info
        at = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        raw = refresh.write(caller.username, at, force=force)
        definitions = Api(kube, kube.namespace).definitions
        try:
            found = await definitions.patch(name, {"metadata": {"annotations": {names.ANNOTATION_REFRESH: raw}}})
        except NotFound:
            raise Unanswered(f"LabletDefinition {name!r} does not exist; kubectl get ldef lists them") from None
        if not timeout_s:
            return None
        try:
            async with asyncio.timeout(timeout_s):
                while (answer := answer_of(found, raw)) is None:
                    await asyncio.sleep(_LOOK_EVERY_S)
                    if (known := await definitions.get(name)) is None:
                        raise Unanswered(f"LabletDefinition {name!r} was deleted in the meantime")
                    found = known
        except TimeoutError:
            said = _condition(found)
            why = f"{said['reason']}: {said['message']}" if said.get("status") == "False" else "does the provider run?"
            raise Unanswered(f"no answer within {timeout_s} s, the request stands: {why}") from None
        return answer
    finally:
        await kube.close()


def answer_of(resource: CustomResource, raw: str) -> Refreshed | None:
    """Read the outcome of a request; None if there is none yet.

    Raises:
        Unanswered: Another request replaced it, or the definition is gone.
    """
    if resource.metadata.deletion_timestamp is not None:
        raise Unanswered(f"LabletDefinition {resource.metadata.name!r} is being deleted")
    last = resource.status.get("lastRefresh", {})
    if last.get("request") != raw:
        if refresh.asked(resource).raw != raw:
            raise Unanswered("another refresh was requested in the meantime and replaces this one")
        return None
    said = _condition(resource)
    return Refreshed(
        definition=resource.metadata.name,
        result=last.get("result", ""),
        version=last.get("version", ""),
        devices=last.get("devices", 0),
        refreshed_by=last.get("requestedBy", ""),
        reason=said.get("reason", ""),
        message=said.get("message", ""),
    )


def _condition(resource: CustomResource) -> dict[str, Any]:
    return next((c for c in resource.status.get("conditions", ()) if c.get("type") == refresh.CONDITION), {})
