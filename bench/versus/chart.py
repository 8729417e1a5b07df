"""A chart of time over pods, as SVG without a library: a few polylines with axes."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_WIDTH, _HEIGHT = 720, 400
_LEFT, _TOP, _RIGHT, _BOTTOM = 60, 40, 150, 45
_COLOURS: Final = ("#c2410c", "#c2410c", "#1d4ed8", "#1d4ed8")
_POINTS_MAX: Final = 200
_TICKS: Final = 5


@dataclass(frozen=True, slots=True)
class Curve:
    """After how many seconds the first, the second … pod had come so far.

    Attributes:
        times_s: In ascending order.
        dashed: Whether the line is.
    """

    name: str
    times_s: Sequence[float]
    dashed: bool = False


def write_chart(path: Path, title: str, curves: Sequence[Curve]) -> None:
    """Write the chart of some curves of the same number of pods."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_svg(title, curves))


def _svg(title: str, curves: Sequence[Curve]) -> str:
    pods = max(len(curve.times_s) for curve in curves)
    latest_s = max(curve.times_s[-1] for curve in curves)
    wide, high = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

    def x(number: float) -> float:
        return _LEFT + wide * number / pods

    def y(time_s: float) -> float:
        return _TOP + high * (1 - time_s / latest_s)

    size = f'width="{_WIDTH}" height="{_HEIGHT}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{_LEFT}" y="22" font-size="15">{title}: seconds until so many are Ready, or gone</text>',
    ]
    for tick in range(_TICKS + 1):
        number, time_s = pods * tick / _TICKS, latest_s * tick / _TICKS
        parts += [
            f'<line x1="{_LEFT}" x2="{_LEFT + wide}" y1="{y(time_s):.1f}" y2="{y(time_s):.1f}" stroke="#ddd"/>',
            f'<text x="{_LEFT - 8}" y="{y(time_s) + 4:.1f}" text-anchor="end">{time_s:.0f} s</text>',
            f'<text x="{x(number):.1f}" y="{_TOP + high + 20}" text-anchor="middle">{number:,.0f}</text>',
        ]
    parts.append(f'<text x="{_LEFT + wide / 2}" y="{_HEIGHT - 8}" text-anchor="middle">pods</text>')
    for curve, colour in zip(curves, _COLOURS, strict=True):
        step = max(1, len(curve.times_s) // _POINTS_MAX)
        chosen = [*range(0, len(curve.times_s), step), len(curve.times_s) - 1]
        points = " ".join(f"{x(n + 1):.1f},{y(curve.times_s[n]):.1f}" for n in chosen)
        dash = ' stroke-dasharray="5 4"' if curve.dashed else ""
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        end_s = curve.times_s[-1]
        label = f"{curve.name} {end_s:.1f} s"
        parts.append(f'<text x="{_LEFT + wide + 6}" y="{y(end_s) + 4:.1f}" fill="{colour}">{label}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"
