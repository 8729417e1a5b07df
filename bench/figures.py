"""Figures, their aims, and the table that shows both."""

import json
import operator
import statistics
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
BUILD = ROOT / "build" / "bench"
_COMPARE = {"<=": operator.le, ">=": operator.ge, "==": operator.eq}

Figures = dict[str, tuple[float, str]]
"""Figure: (value, unit)."""


def percentile(values: Sequence[float], share: float) -> float:
    """Return the `share` percentile by nearest rank, without interpolation."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, round(share * len(ordered)) - 1))] if ordered else float("nan")


def show(what: str, figures: Figures) -> None:
    """Print the figures of one round."""
    print(f"{what}: " + ", ".join(f"{k} {v:.2f} {u}" for k, (v, u) in figures.items()), flush=True)


def finish(benchmark: str, rounds: Sequence[Figures]) -> bool:
    """Write `build/bench/<name>.json`, print the table, and return whether the medians meet their aims."""
    with (Path(__file__).parent / "aims.toml").open("rb") as stream:
        aims = tomllib.load(stream).get(benchmark, {})
    units = {name: unit for figures in rounds for name, (_, unit) in figures.items()}
    units |= {name: aim["unit"] for name, aim in aims.items() if name not in units}
    rows = [_row(name, unit, aims.get(name, {}).get("aim"), rounds) for name, unit in units.items()]
    BUILD.mkdir(parents=True, exist_ok=True)
    (BUILD / f"{benchmark}.json").write_text(json.dumps(rows, indent=1) + "\n")
    print(f"\n{benchmark:<46} {'median':>9} {'best':>9} {'worst':>9}  of {len(rounds)}")
    for row in rows:
        verdict = {True: "holds", False: "MISSED", None: ""}[row["holds"]]
        numbers = " ".join(f"{row[key]!s:>9}" for key in ("median", "best", "worst"))
        print(f"  {row['figure']:<44} {numbers}  {row['unit']:<8} {row['aim'] or '':<10} {verdict}")
    return all(row["holds"] is not False for row in rows)


def _row(name: str, unit: str, aim: str | None, rounds: Sequence[Figures]) -> dict[str, Any]:
    """Return a row of the table; a figure that no round produced misses its aim."""
    row = {"figure": name, "median": None, "best": None, "worst": None, "unit": unit, "aim": aim, "holds": None}
    values = sorted((figures[name][0] for figures in rounds if name in figures), reverse=bool(aim and aim[0] == ">"))
    if not values:
        return row | {"holds": False}
    middle = statistics.median(values)
    holds = None if aim is None else _holds(middle, aim)
    return row | {
        "median": round(middle, 3),
        "best": round(values[0], 3),
        "worst": round(values[-1], 3),
        "holds": holds,
    }


def _holds(value: float, aim: str) -> bool:
    sign, _, number = aim.partition(" ")
    return bool(_COMPARE[sign](value, float(number)))
