"""`kubectl lablet refresh`: request a refresh of a definition's content, and wait for the outcome."""

import asyncio
from typing import Final

import click
import msgspec

from vkprovider.cli.shared import clock
from vkprovider.cli.shared.output import ProgressLine, one
from vkprovider.cli.shared.place import Place
from vkprovider.lablet import names
from vkprovider.lablet.models.status import LastRefresh, definition_status
from vkprovider.labs.pure.definition import refresh
from vkprovider.platform.errors import NotFound
from vkprovider.platform.kube.api import Api
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.objects import CustomResource

_LOOK_EVERY_S: Final = 0.3
_KINDS: Final = frozenset({"ldef", "labletdefinition", "labletdefinitions"})


class Refreshed(msgspec.Struct, frozen=True, rename="camel"):
    """The outcome of a refresh, as `-o json` shows it.

    Attributes:
        definition: The LabletDefinition.
        result: `Stored`, `Unchanged`, or `Refused` if the definition keeps what it has.
        version: Of the content that was read.
        devices: How many it has.
        refreshed_by: Who requested it.
        reason: Of the condition `Refreshed`.
        message: Of the same.
    """

    definition: str
    result: str
    version: str
    devices: int
    refreshed_by: str
    reason: str
    message: str


class Unanswered(click.ClickException):
    """The outcome did not come in time; the message says what is known."""


def refresh_definition(name: str, *, timeout_s: int, output: str, force: bool, wait: bool, place: Place) -> None:
    """Read the content of LabletDefinition NAME again, from its object store or ConfigMap."""
    name = definition_name(name)

    async def work(kube: KubeClient, _: str) -> Refreshed | None:
        with ProgressLine() as progress:
            return await _refresh(kube, name, progress, force=force, timeout_s=timeout_s if wait else 0)

    answer = place.run(work)
    if answer is None:
        click.echo(f"labletdefinition/{name}: refresh requested")
    elif output != "text":
        click.echo(one("LabletDefinitionRefresh", answer, output))
    elif answer.result != "Refused":
        click.echo(f"labletdefinition/{name}: {answer.message}")
    if answer is not None and answer.result == "Refused":
        raise click.ClickException(
            f"labletdefinition/{name} keeps what it has: {answer.reason}: {answer.message.rstrip('.')}. "
            "Correct the content, and refresh it again"
        )


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
    kube: KubeClient, name: str, progress: ProgressLine, *, force: bool, timeout_s: int
) -> Refreshed | None:
    """Request a refresh in the caller's name; return its outcome, None without `timeout_s`.

    Raises:
        Unanswered: There is no outcome yet.
    """
    api = Api(kube, kube.namespace)
    caller = (await api.review_self()).status.user_info
    at = clock.now().isoformat(timespec="microseconds").replace("+00:00", "Z")
    raw = refresh.write(caller.username, at, force=force)
    try:
        found = await api.definitions.patch(name, {"metadata": {"annotations": {names.ANNOTATION_REFRESH: raw}}})
    except NotFound:
        raise Unanswered(f"LabletDefinition {name!r} does not exist; see: kubectl get labletdefinitions") from None
    if not timeout_s:
        return None
    try:
        async with asyncio.timeout(timeout_s):
            while (answer := answer_of(found, raw)) is None:
                progress.stage(f"labletdefinition/{name}", "is being refreshed")
                await asyncio.sleep(_LOOK_EVERY_S)
                if (known := await api.definitions.get(name)) is None:
                    raise Unanswered(f"LabletDefinition {name!r} was deleted in the meantime; apply it again")
                found = known
    except TimeoutError:
        said = definition_status(found).condition(refresh.CONDITION)
        refused = said if said is not None and said.status == "False" else None
        why = f"{refused.reason}: {refused.message}" if refused is not None else "does the provider run?"
        raise Unanswered(
            f"no answer within {timeout_s} s, the request stands: {why} To see what is wrong: vkprovider doctor"
        ) from None
    return answer


def answer_of(resource: CustomResource, raw: str) -> Refreshed | None:
    """Read the outcome of a request; None if there is none yet.

    Raises:
        Unanswered: Another request replaced it, or the definition is gone.
    """
    if resource.metadata.deletion_timestamp is not None:
        raise Unanswered(
            f"LabletDefinition {resource.metadata.name!r} is being deleted; wait until it is gone, and apply it again"
        )
    status = definition_status(resource)
    last = status.last_refresh or LastRefresh()
    if last.request != raw:
        if refresh.asked(resource).raw != raw:
            raise Unanswered(
                "another refresh was requested in the meantime and replaces this one; for its outcome: "
                "kubectl describe labletdefinition"
            )
        return None
    said = status.condition(refresh.CONDITION)
    return Refreshed(
        definition=resource.metadata.name,
        result=last.result,
        version=last.version,
        devices=last.devices,
        refreshed_by=last.requested_by,
        reason=said.reason if said is not None else "",
        message=said.message if said is not None else "",
    )
