"""What the API server did during a run, by its own metrics: requests by kind, and waits by priority level."""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Final, NamedTuple

from vkpsandbox import Sandbox

_LINE: Final = re.compile(r"^(\w+)\{(.*)\} (\S+)$", re.MULTILINE)
_LABEL: Final = re.compile(r'(\w+)="([^"]*)"')
_SUM: Final = "apiserver_request_duration_seconds_sum"
_COUNT: Final = "apiserver_request_duration_seconds_count"
_WAIT_SUM: Final = "apiserver_flowcontrol_request_wait_duration_seconds_sum"
_WAIT_COUNT: Final = "apiserver_flowcontrol_request_wait_duration_seconds_count"
_LONG: Final = frozenset({"WATCH", "CONNECT"})
_ROWS_MAX: Final = 12
_LEVELS_MAX: Final = 6


class Served(NamedTuple):
    """Totals since the API server began.

    Attributes:
        requests, seconds: Of requests, by verb and resource.
        waits, waited_s: Of requests that passed a FlowSchema, by its name and its priority level.
    """

    requests: Counter[str]
    seconds: Counter[str]
    waits: Counter[str]
    waited_s: Counter[str]


def served(sandbox: Sandbox) -> Served:
    """Read the totals."""
    found = Served(Counter(), Counter(), Counter(), Counter())
    columns = {_COUNT: found.requests, _SUM: found.seconds, _WAIT_COUNT: found.waits, _WAIT_SUM: found.waited_s}
    for name, labels, value in _LINE.findall(sandbox.kubectl("get", "--raw", "/metrics").stdout):
        if name in columns:
            columns[name][_key(dict(_LABEL.findall(labels)))] += float(value)  # type: ignore[assignment]
    return found


def _key(labels: Mapping[str, str]) -> str:
    if "verb" not in labels:
        return f"{labels['flow_schema']} ({labels['priority_level']})"
    return f"{labels['verb']} {'/'.join(filter(None, (labels['resource'], labels['subresource'])))}"


def since(before: Served, after: Served) -> Served:
    """Return what happened between two readings."""
    return Served(*(now - then for then, now in zip(before, after, strict=True)))


def table(side: str, one: Served) -> str:
    """Return a table of what a run made the API server do, the most frequent first."""
    short = Counter({kind: count for kind, count in one.requests.items() if kind.split(" ")[0] not in _LONG})
    rows = [f"API server, {side}: requests, mean ms"]
    rows += [
        f"    {kind:<44}{count:>8.0f} {_mean_ms(one.seconds, one.requests, kind):>8.1f}"
        for kind, count in short.most_common(_ROWS_MAX)
    ]
    rows.append(f"API server, {side}: waits for a seat, mean ms")
    rows += [
        f"    {level:<44}{one.waits[level]:>8.0f} {_mean_ms(one.waited_s, one.waits, level):>8.1f}"
        for level, _ in one.waited_s.most_common(_LEVELS_MAX)
    ]
    return "\n".join(rows)


def _mean_ms(seconds: Counter[str], counts: Counter[str], key: str) -> float:
    return 1000 * seconds[key] / counts[key] if counts[key] else 0.0
