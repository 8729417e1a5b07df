"""What channels, muxes and lablets are shown of a pass: annotations, and what people read in them."""

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import structlog

from vkprovider.lablet import names
from vkprovider.lablet.exposure import LIVE, PENDING, REFUSED, Access, answer_patch, encode_answer
from vkprovider.mux.effects.store import Writes
from vkprovider.mux.index import SERVICES, ExposedLablet, Service
from vkprovider.mux.pure import muxnames
from vkprovider.mux.pure.decide import Mapped, Plan
from vkprovider.mux.pure.endpoints import Backends, owner_of, ready_addresses
from vkprovider.mux.pure.facts import MuxRef, Owner, ServicePort, annotation_key
from vkprovider.mux.pure.slices import Sources
from vkprovider.platform.concurrency import at_most
from vkprovider.platform.errors import Conflict, Forbidden, Invalid, NotFound
from vkprovider.platform.kube.client import Guard
from vkprovider.platform.kube.resources import Resource
from vkprovider.platform.kube.watch import key_of
from vkprovider.platform.runtime.context import Context

_log: Final = structlog.get_logger(__name__)

TOPOLOGY_CHARS_MAX: Final = 64 * 1024
"""Where the topology ends: all annotations of an object have 256 KiB together."""
_PENDING: Final = "pending"
_PORTS_TOLD: Final = 12
"""Ports that an Event names."""


def format_ports_annotation(mapped: Iterable[Mapped]) -> str:
    """Return the annotation `ports` of a channel: `http:8080->20000, grpc:9090->20001`."""
    return ", ".join(f"{each.row.port_name}:{each.row.channel_port}->{each.row.mux_port}" for each in mapped)


def format_channels_annotation(plan: Plan) -> str:
    """Return the annotation `channels` of a mux: a JSON list of `namespace/name`."""
    return json.dumps([str(owner) for owner in plan.mapped], separators=(",", ":"))


def format_summary_annotation(plan: Plan, backends: Mapping[Owner, Sequence[Backends]], hint: str) -> str:
    """Return the annotation `summary` of a mux: `2 channel(s) | 3 port(s) | 4 pod(s) | DNS: 203.0.113.10`.

    Args:
        plan: What was decided.
        backends: The backends of its channels.
        hint: What people open it by.
    """
    ports = sum(len(mapped) for mapped in plan.mapped.values())
    pods = sum(ready_addresses(its) for its in backends.values())
    return f"{len(plan.mapped)} channel(s) | {ports} port(s) | {pods} pod(s) | DNS: {hint}"


def format_topology_annotation(
    ref: MuxRef, plan: Plan, backends: Mapping[Owner, Sequence[Backends]], hint: str, hints: Mapping[Owner, str]
) -> str:
    """Return the annotation `topology` of a mux: a line for itself, and one for each channel and each of its ports.

    A topology that is too long names the channels that it leaves out by their number.

    Args:
        ref: The mux.
        plan: What was decided.
        backends: The backends of its channels.
        hint: What people open it by.
        hints: The outside names of channels that have one; another one has its name within the cluster.
    """
    text = f"{ref} | DNS: {hint}\n"
    for shown, (owner, mapped) in enumerate(plan.mapped.items()):
        pods = ready_addresses(backends.get(owner, ()))
        name = hints.get(owner) or f"{owner.service}.{owner.namespace}.svc"
        lines = f"  {owner} | DNS: {name} | {pods} pod(s)\n"
        if owner.learner is not None:
            lines = f"  {owner} | lablet\n"
        for each in mapped:
            row = each.row
            lines += f"    {row.port_name}:{row.channel_port}->{row.mux_port}/{row.protocol}\n"
        if len(text) + len(lines) > TOPOLOGY_CHARS_MAX:
            return text + f"  and {len(plan.mapped) - shown} more channel(s)\n"
        text += lines
    return text


def dns_hint(external_names: Sequence[str], addresses: Sequence[str]) -> str:
    """Return what people open a mux by: its names, then its addresses.

    >>> dns_hint(["labs.example.com"], [])
    'labs.example.com, pending'
    """
    return ", ".join([*external_names, *(addresses or [_PENDING])])


def format_port_changes(before: Iterable[ServicePort], after: Iterable[ServicePort]) -> str:
    """Return the ports that came, went, or have another channel, as an Event names them.

    >>> format_port_changes([ServicePort("", 101)], [ServicePort("placeholder", 101)])
    'renamed 101/TCP'
    """
    was, now = ({(port.port, port.protocol): port for port in ports} for ports in (before, after))
    words = {
        "added": sorted(now.keys() - was.keys()),
        "removed": sorted(was.keys() - now.keys()),
        "renamed": sorted(key for key in now.keys() & was.keys() if now[key] != was[key]),
    }
    return "; ".join(f"{word} {_listed(ports)}" for word, ports in words.items() if ports)


def _listed(ports: Sequence[tuple[int, str]]) -> str:
    text = ", ".join(f"{number}/{protocol}" for number, protocol in ports[:_PORTS_TOLD])
    return text if len(ports) <= _PORTS_TOLD else f"{text} and {len(ports) - _PORTS_TOLD} more"


_TWICE = "another lablet of this name and learner is still there"
_NO_ADDRESS = "the mux has no address yet"


def answers_of(
    lablets: Iterable[ExposedLablet], plan: Plan, addresses: Sequence[str]
) -> list[tuple[ExposedLablet, dict[str, Access]]]:
    """Return the answer to each lablet, by the names of its ports.

    Args:
        lablets: Those that name the mux, in the order in which they were decided about.
        plan: What was decided, and is written already: a port is live when it is answered so.
        addresses: Those of the load balancer.
    """
    waits = {each.channel.owner: each for each in plan.refused}
    answers, had = [], set[Owner]()
    for lablet in lablets:
        owner = owner_of(lablet.exposure)
        numbers = {each.row.port_name: each.row.mux_port for each in plan.mapped.get(owner, ())}
        refused = waits.get(owner)
        answer: dict[str, Access] = {}
        for port in lablet.exposure.ports:
            if owner in had:
                answer[port.name] = Access(PENDING, why=_TWICE)
            elif port.name in numbers:
                answer[port.name] = (
                    Access(LIVE, addresses[0], numbers[port.name])
                    if addresses
                    else Access(PENDING, port=numbers[port.name], why=_NO_ADDRESS)
                )
            elif refused is not None:
                why = f"{refused.fault.reason}: {refused.fault.message}"
                answer[port.name] = Access(REFUSED if refused.until is None else PENDING, why=why)
        had.add(owner)
        answers.append((lablet, answer))
    return answers


def refusal(lablet: ExposedLablet, why: str) -> dict[str, Access]:
    """Return the answer that refuses all ports of a lablet."""
    return {port.name: Access(REFUSED, why=why) for port in lablet.exposure.ports}


AT_ONCE: Final = 16
"""Writes for one mux at once."""


class ChannelReport(NamedTuple):
    """What a channel Service is to show.

    Attributes:
        channel: The Service.
        ports: Its annotation; None removes it.
        ingress: The addresses of the mux; none removes them.
    """

    channel: Service
    ports: str | None = None
    ingress: Sequence[Any] = ()


class Reports:
    """Writes what channels show."""

    def __init__(self, ctx: Context, prefix: str, writes: Writes) -> None:
        self._services = Resource(ctx.kube, SERVICES)
        self._kube = ctx.kube
        self._slices = ctx.api.endpoint_slices
        self._key = annotation_key(prefix, muxnames.MUX_PORTS)
        self._writes = writes

    async def update_channel_service_metadata(self, reports: Iterable[ChannelReport], guard: Guard) -> None:
        """Write what channels show, where they show something else.

        Raises:
            OutsideError: The API server did not answer; what it refuses for one channel is logged.
        """
        await at_most(AT_ONCE, lambda each: self._report(each, guard), list(reports))

    async def _report(self, report: ChannelReport, guard: Guard) -> None:
        meta = report.channel.metadata
        services = self._services.within(meta.namespace).metadata_only
        if meta.annotations.get(self._key) != report.ports:
            body = {"metadata": {"annotations": {self._key: report.ports}}}
            await self._written(
                "patch the ports of channel",
                report.channel,
                body,
                lambda: services.patch(meta.name, body, uid=meta.uid, guard=guard),
            )
        if report.channel.ingress != list(report.ingress):
            status = {"status": {"loadBalancer": {"ingress": list(report.ingress) or None}}}
            await self._written(
                "patch the status of channel",
                report.channel,
                status,
                lambda: services.patch_status(meta.name, status, uid=meta.uid, guard=guard),
            )

    async def _written(
        self, what: str, channel: Service, body: Mapping[str, Any], call: Callable[[], Awaitable[object]]
    ) -> None:
        meta = channel.metadata
        try:
            await self._writes.send_once(what, meta, key_of(meta), body, call)
        except (Conflict, NotFound):  # it was deleted
            return
        except (Forbidden, Invalid) as error:  # by a policy, perhaps: other channels go on
            _log.warning(f"cannot {what}", channel=key_of(meta), error=str(error))

    async def answer(self, lablet: ExposedLablet, answer: Mapping[str, Access], guard: Guard) -> None:
        """Answer an exposed lablet, if it has another answer."""
        meta = lablet.slice.metadata
        text = encode_answer(answer)
        if meta.annotations.get(names.ANNOTATION_MUX_ANSWER) == text:
            return
        patch = answer_patch(meta.uid, answer)
        try:
            await self._writes.send_once(
                "patch the answer to lablet",
                meta,
                key_of(meta),
                {"answer": text},
                lambda: self._slices.metadata_only.json_patch(meta.name, patch, guard=guard),
            )
        except (Conflict, NotFound, Invalid):  # it is gone, or another one has its name
            return


def channel_reports(channels: Iterable[Service], plan: Plan, ingress: Sequence[Any]) -> list[ChannelReport]:
    """Return what the channels of a mux are to show after a pass: those that it refuses, nothing."""
    reports = []
    for channel in channels:
        mapped = plan.mapped.get(channel.owner)
        shown = ChannelReport(channel, format_ports_annotation(mapped), ingress) if mapped else ChannelReport(channel)
        reports.append(shown)
    return reports


def mux_annotations(
    mux: Service, channels: Iterable[Service], plan: Plan, sources: Sources, prefix: str
) -> dict[str, str]:
    """Return the annotations by which a mux reports on its channels."""
    backends: dict[Owner, Sequence[Backends]] = {
        owner: [source.backends for source in its] for owner, its in sources.items()
    }
    hint = dns_hint(mux.external_names, mux.addresses)
    hints = {each.owner: ", ".join(each.external_names) for each in channels}
    topology = format_topology_annotation(mux.ref, plan, backends, hint, hints)
    return {
        annotation_key(prefix, muxnames.MUX_CHANNELS): format_channels_annotation(plan),
        annotation_key(prefix, muxnames.MUX_TOPOLOGY): topology,
        annotation_key(prefix, muxnames.MUX_SUMMARY): format_summary_annotation(plan, backends, hint),
    }
