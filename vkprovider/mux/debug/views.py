"""What the debug page shows, as data and as plain HTML: only of muxes that the caller may see."""

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, Final

from vkprovider.mux.events import Events
from vkprovider.mux.index import MuxIndex, Service
from vkprovider.mux.memory import LastPass, MuxMemory
from vkprovider.mux.pure.facts import Owner
from vkprovider.mux.pure.slices import Source


def state(
    index: MuxIndex, memory: MuxMemory, events: Events, visible: Sequence[str], *, sees_all: bool
) -> dict[str, Any]:
    """Return the muxes with their limits, the counts of each, and the last Events, newest first."""
    muxes = [_state_of(key, index.muxes[key], memory.seen.get(key)) for key in visible if key in index.muxes]
    shown = [event for event in reversed(events.recent) if sees_all or event["mux"] in visible]
    return {"muxes": muxes, "events": shown}


def _state_of(key: str, service: Service, seen: LastPass | None) -> dict[str, Any]:
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
            "not_ready": sum(len(each.not_ready) + len(each.leaving) for each in backends),
        },
        "resting": [{"port": rest.port, "protocol": rest.protocol} for rest in plan.state.resting],
        "refused": [
            {"channel": str(each.channel.owner), "reason": str(each.fault.reason), "message": each.fault.message}
            for each in plan.refused
        ],
        "notes": [{"reason": str(note.reason), "message": note.message} for note in plan.notes],
    }


def topology(index: MuxIndex, memory: MuxMemory, visible: Sequence[str]) -> dict[str, Any]:
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


def _channel(seen: LastPass, owner: Owner) -> dict[str, Any]:
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
        {"address": address, "port": port.port, "ready": address in source.backends.ready}
        for source in sources
        for port in source.backends.ports
        if port.name == name
        for address in source.backends.addresses
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


_STYLE: Final = (
    "body{font:16px/1.5 system-ui,sans-serif;margin:2rem;max-width:70rem}"
    "table{border-collapse:collapse;margin:0 0 2rem}"
    "th,td{border:1px solid #888;padding:.2rem .6rem;text-align:left;vertical-align:top}"
)
STYLE_SOURCE: Final = f"'sha256-{base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()}'"
"""The style in the words of a Content-Security-Policy."""


def page(replica: str, state: Mapping[str, Any], topology: Mapping[str, Any]) -> str:
    """Return the page."""
    served = {mux["mux"]: mux for mux in topology["muxes"]}
    parts = [_mux(mux, served.get(mux["mux"])) for mux in state["muxes"]]
    if not parts:
        parts = ["<p>There is no mux that you may see.</p>"]
    events = [(each["type"], each["reason"], each["object"], each["message"]) for each in state["events"]]
    body = (
        "".join(parts)
        + "<h2>Last Events of this replica</h2>"
        + _table(("Type", "Reason", "Object", "Message"), events)
    )
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Muxes</title><style>{_STYLE}</style></head>'
        f"<body><h1>Muxes</h1><p>Replica {escape(replica)}. Each replica shows the muxes that it serves; the others it "
        f"only names.</p>{body}</body></html>"
    )


def _mux(mux: Mapping[str, Any], served: Mapping[str, Any] | None) -> str:
    addresses = ", ".join(mux["addresses"]) or "no address yet"
    head = f"<h2>{escape(mux['mux'])}</h2><p>{escape(addresses)}"
    if served is None:
        return f"{head}. Another replica serves it.</p>"
    rows = [
        (
            channel["channel"] + (" (lablet)" if channel["lablet"] else ""),
            f"{port['name']}:{port['channel_port']}",
            f"{port['outside_port']}/{port['protocol']}",
            ", ".join(
                f"{backend['address']}:{backend['port']}" + ("" if backend["ready"] else " (not ready)")
                for backend in port["backends"]
            )
            or "none",
        )
        for channel in served["channels"]
        for port in channel["ports"]
    ]
    refused = [(each["channel"], each["reason"], each["message"]) for each in mux["refused"]]
    notes = [("the mux", each["reason"], each["message"]) for each in mux["notes"]]
    text = f"{head}. {mux['channels']} channel(s), {mux['ports']} port(s).</p>"
    text += _table(("Channel", "Port", "Outside port", "Backends"), rows)
    return text + (_table(("Refused", "Reason", "Message"), [*notes, *refused]) if notes or refused else "")


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    heads = "".join(f'<th scope="col">{escape(each)}</th>' for each in head)
    lines = "".join(f"<tr>{''.join(f'<td>{escape(each)}</td>' for each in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table>"
