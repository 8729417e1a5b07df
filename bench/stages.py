"""Where the time of a Pod goes: the provider's timeline between the moments that the benchmark's watch saw."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from bench.figures import percentile
from bench.outside import Life
from vkprovider.labs.controllers import counters
from vkpsandbox.paths import layout_of

Times = dict[str, dict[str, float]]
"""When each Pod, by UID, reached each stage (Unix seconds)."""

UP: Final = (
    counters.SEEN,
    counters.TURN_BEGUN,
    "CLAIM",
    counters.CLAIM_STORED,
    "IMPORT",
    counters.READY_DECIDED,
    counters.STATUS_SENT,
    counters.STATUS_ANSWERED,
)
DOWN: Final = (counters.DELETION_SEEN, "DELETE_LAB", counters.DELETE_SENT, "DELETE_POD", counters.REMOVAL_SEEN)
BOUND: Final = "bound, by the benchmark's watch"
READY: Final = "Ready, by the benchmark's watch"
GONE: Final = "gone, by the benchmark's watch"


def timeline_of(sandbox: str) -> Path:
    """Return where the provider of a sandbox writes its timeline, if its settings say so."""
    return layout_of(sandbox, None).workers / "timeline"


def table(path: Path, lives: Mapping[str, Life]) -> str:
    """Return a table of the whole way up and down; for the arguments see `read`."""
    ups, downs = read(path, lives)
    return "\n".join((rows(ups, (BOUND, *UP, READY)), rows(downs, (*DOWN, GONE))))


def read(path: Path, lives: Mapping[str, Life]) -> tuple[Times, Times]:
    """Return when each pod reached each stage up and down.

    Args:
        path: A file as `vkprovider.labs.controllers.counters` writes it; it is complete when the provider has stopped.
        lives: The pods that count, by UID.
    """
    ups = {uid: {BOUND: life.bound, READY: life.ready} for uid, life in lives.items()}
    downs = {uid: {GONE: life.gone} for uid, life in lives.items()}
    with path.open() as stream:
        for line in stream:
            at, uid, stage = line.rstrip("\n").split(" ", 2)
            if uid in lives:
                _note(ups[uid], downs[uid], stage, float(at))
    return ups, downs


def rows(found: Times, way: tuple[str, ...]) -> str:
    """Return a table of the milliseconds from each stage of a way to the next, and since the first, over all pods."""
    whole = [times for times in found.values() if times.keys() >= set(way)]
    lines = [f"  {len(whole)} pods, ms {'from the stage before: p50':>44} {'p99':>8}   since the first: p50 {'p99':>8}"]
    for number, stage in enumerate(way[1:]):
        steps = [1000 * (times[stage] - times[way[number]]) for times in whole]
        since = [1000 * (times[stage] - times[way[0]]) for times in whole]
        cells = [percentile(values, share) for values in (steps, since) for share in (0.5, 0.99)]
        lines.append(f"    {stage:<40} {cells[0]:>12.0f} {cells[1]:>8.0f} {cells[2]:>21.0f} {cells[3]:>8.0f}")
    return "\n".join(lines)


def _note(up: dict[str, float], down: dict[str, float], stage: str, at: float) -> None:
    """Keep the first of each stage; of statuses, the first after the decision that the Pod is Ready."""
    early = stage in {counters.STATUS_SENT, counters.STATUS_ANSWERED} and counters.READY_DECIDED not in up
    if stage in UP and not early:
        up.setdefault(stage, at)
    elif stage in DOWN:
        down.setdefault(stage, at)
