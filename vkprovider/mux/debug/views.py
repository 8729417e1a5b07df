"""What the debug page shows, as data: only of muxes that the caller may see."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from vkprovider.mux.events import Events
from vkprovider.mux.index import Index
from vkprovider.mux.memory import Memory, Seen
from vkprovider.mux.pure.facts import Owner
from vkprovider.mux.pure.slices import Source
from vkprovider.mux.service import Service


def state(index: Index, memory: Memory, events: Events, visible: Sequence[str], *, sees_all: bool) -> dict[str, Any]:
    """Return the muxes with their limits, the counts of each, and the last Events, newest first."""
    muxes = [_state_of(key, index.muxes[key], memory.seen.get(key)) for key in visible if key in index.muxes]
    shown = [event for event in reversed(events.recent) if sees_all or event["mux"] in visible]
    return {"muxes": muxes, "events": shown}


def _state_of(key: str, service: Service, seen: Seen | None) -> dict[str, Any]:
    about: dict[str, Any] = {"mux": key, "addresses": service.addresses, "served_here": seen is not None}
    if seen is None:
        return about
    plan = seen.plan
    backends = [source.backends for its in seen.sources.values() for source in its]
    return {
        **about,
        "looked_at": seen.at,
        "channels": len(plan.mapped),
        "ports": sum(map(len, plan.mapped.values())),
        "backends": {
            "ready": sum(len(each.ready) for each in backends),
            "not_ready": sum(len(each.not_ready) for each in backends),
        },
        "resting": [{"port": rest.port, "protocol": rest.protocol} for rest in plan.state.resting],
        "refused": [
            {"channel": str(each.channel.owner), "reason": str(each.fault.reason), "message": each.fault.message}
            for each in plan.refused
        ],
        "notes": [{"reason": str(note.reason), "message": note.message} for note in plan.notes],
    }


def topology(index: Index, memory: Memory, visible: Sequence[str]) -> dict[str, Any]:
    """Return the muxes that this replica serves, with the ports of their channels and where each leads."""
    return {
        "muxes": [
            {
                "mux": key,
                "addresses": index.muxes[key].addresses,
                "channels": [_channel(seen, owner) for owner in seen.plan.mapped],
            }
            for key in visible
            if key in index.muxes and (seen := memory.seen.get(key)) is not None
        ]
    }


def _channel(seen: Seen, owner: Owner) -> dict[str, Any]:
    sources = seen.sources.get(owner, ())
    return {
        "channel": str(owner),
        "lablet": owner.learner is not None,
        "ports": [
            {
                "name": each.row.port_name,
                "channel_port": each.row.channel_port,
                "outside_port": each.row.mux_port,
                "protocol": each.row.protocol,
                "backends": _backends(sources, each.name),
            }
            for each in seen.plan.mapped[owner]
        ],
        "refused_backends": [{"address": address, "is": what} for address, what in seen.refused.get(owner, {}).items()],
    }


def _backends(sources: Iterable[Source], name: str) -> list[Mapping[str, Any]]:
    return [
        {"address": address, "port": port.port, "ready": ready}
        for source in sources
        for port in source.backends.ports
        if port.name == name
        for ready, addresses in ((True, source.backends.ready), (False, source.backends.not_ready))
        for address in addresses
    ]


def targets(found: Mapping[str, Any]) -> set[tuple[str, int]]:
    """Return the addresses and TCP ports that a topology leads to, inside and outside."""
    inside = {
        (backend["address"], backend["port"])
        for mux in found["muxes"]
        for channel in mux["channels"]
        for port in channel["ports"]
        if port["protocol"] == "TCP"
        for backend in port["backends"]
    }
    outside = {
        (address, port["outside_port"])
        for mux in found["muxes"]
        for address in mux["addresses"]
        for channel in mux["channels"]
        for port in channel["ports"]
        if port["protocol"] == "TCP"
    }
    return inside | outside
