"""The debug page for people: plain HTML without scripts."""

import base64
import hashlib
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any, Final

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
