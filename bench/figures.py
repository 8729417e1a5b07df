"""Figures, their aims, and the table that shows both."""

import json
import operator
import statistics
import tomllib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
_COMPARE = {"<=": operator.le, ">=": operator.ge, "==": operator.eq}

Figures = dict[str, tuple[float, str]]
"""Figure: (value, unit)."""


def percentile(values: Sequence[float], share: float) -> float:
    """Return the `share` percentile by nearest rank, without interpolation."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, round(share * len(ordered)) - 1))] if ordered else float("nan")


def median_of(runs: Sequence[Figures]) -> Figures:
    """Return the median of each figure over several runs."""
    return {name: (statistics.median(run[name][0] for run in runs), unit) for name, (_, unit) in runs[0].items()}


def finish(benchmark: str, figures: Figures) -> bool:
    """Write `build/bench/<name>.json`, print the table, and return whether every aim holds."""
    with (Path(__file__).parent / "aims.toml").open("rb") as stream:
        aims = tomllib.load(stream).get(benchmark, {})
    rows = []
    for name, (value, unit) in figures.items():
        aim = aims.get(name, {}).get("aim")
        holds = None if aim is None else _holds(value, aim)
        rows.append({"figure": name, "value": round(value, 3), "unit": unit, "aim": aim, "holds": holds})
    rows += [
        {"figure": name, "value": None, "unit": aim["unit"], "aim": aim["aim"], "holds": False}
        for name, aim in aims.items()
        if name not in figures
    ]
    target = ROOT / "build" / "bench" / f"{benchmark}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(rows, indent=1) + "\n")
    print(f"\n{benchmark}")
    for row in rows:
        verdict = {True: "holds", False: "MISSED", None: ""}[row["holds"]]
        print(f"  {row['figure']:<40} {row['value']!s:>10} {row['unit']:<8} {row['aim'] or '':<10} {verdict}")
    return all(row["holds"] is not False for row in rows)


def _holds(value: float, aim: str) -> bool:
    sign, _, number = aim.partition(" ")
    return bool(_COMPARE[sign](value, float(number)))
