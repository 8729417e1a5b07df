"""The picture of a lab: where its devices stand and which lines join them.

The places are those of the topology, scaled so that neither devices nor their labels cover each other. Where the
topology has no places, or the same one for all, the devices stand on a circle or in rows. A place is a pure function of
the topology, so that the picture of a lab stays as it is while its devices boot.
"""

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import combinations
from typing import Final, NamedTuple

CELL_WIDTH: Final = 140
CELL_HEIGHT: Final = 104
"""The room that a device needs with its label and its state."""
_LABEL_CHARS_MAX: Final = 15
_CIRCLE_MAX: Final = 12
"""The most devices on a circle; more of them stand in rows."""
_CELLS_A_SIDE: Final = 4.0
"""How much longer a picture may be than one whose devices stand as close as they can, side by side."""
_PAIRS_MAX: Final = 200
"""The most devices of which each pair is looked at."""

Place = tuple[int, int]
Point = tuple[float, float]


class Spot(NamedTuple):
    """A device in the picture.

    Attributes:
        label: The device's.
        text: The label, shortened to what there is room for.
        x, y: The middle.
    """

    label: str
    text: str
    x: int
    y: int


class Joint(NamedTuple):
    """A line between the middles of two devices.

    Attributes:
        n1, n2: Their labels.
    """

    n1: str
    n2: str
    x1: int
    y1: int
    x2: int
    y2: int


class Picture(NamedTuple):
    """A picture; its left upper corner is at 0, 0.

    Attributes:
        spots: In the order of the devices.
        joints: To draw beneath them.
    """

    width: int
    height: int
    spots: tuple[Spot, ...] = ()
    joints: tuple[Joint, ...] = ()


@lru_cache(maxsize=64)
def draw(devices: tuple[tuple[str, Place | None], ...], links: tuple[tuple[str, str], ...]) -> Picture:
    """Return the picture of a lab.

    Args:
        devices: Label and place of each; labels differ.
        links: The labels that are joined; one that is no device's is left out.
    """
    points = _layout([place for _, place in devices])
    left, top = (min((point[axis] for point in points), default=0.0) for axis in (0, 1))
    spots = tuple(
        Spot(label, _shortened(label), round(x - left + CELL_WIDTH / 2), round(y - top + CELL_HEIGHT / 2))
        for (label, _), (x, y) in zip(devices, points, strict=True)
    )
    by_label = {spot.label: spot for spot in spots}
    joints = tuple(
        Joint(n1, n2, by_label[n1].x, by_label[n1].y, by_label[n2].x, by_label[n2].y)
        for n1, n2 in links
        if n1 in by_label and n2 in by_label and n1 != n2
    )
    width = max((spot.x for spot in spots), default=0) + CELL_WIDTH // 2
    height = max((spot.y for spot in spots), default=0) + CELL_HEIGHT // 2
    return Picture(width, height, spots, joints)


def _layout(places: Sequence[Place | None]) -> list[Point]:
    known = [place for place in places if place is not None]
    if len(set(known)) < 2:  # noqa: PLR2004 (one place is none)
        return _circle(len(places)) if len(places) <= _CIRCLE_MAX else _rows(len(places))
    scaled = iter(_apart(known))
    points = [next(scaled) if place is not None else None for place in places]
    below = max(y for _, y in (point for point in points if point is not None)) + CELL_HEIGHT
    left = min(x for x, _ in (point for point in points if point is not None))
    rest = iter(_rows(sum(point is None for point in points)))

    def beneath(point: Point) -> Point:
        return point[0] + left, point[1] + below

    return [point if point is not None else beneath(next(rest)) for point in points]


def _circle(count: int) -> list[Point]:
    """Return the places of a few devices, the first at the top; two of them stand side by side."""
    if count <= 1:
        return [(0.0, 0.0)] * count
    if count == 2:  # noqa: PLR2004 (a pair)
        return [(0.0, 0.0), (1.5 * CELL_WIDTH, 0.0)]
    radius = CELL_WIDTH / (2 * math.sin(math.pi / count)) * 1.1
    turns = [2 * math.pi * number / count for number in range(count)]
    return _spread([(radius * math.sin(turn), -radius * math.cos(turn)) for turn in turns])


def _rows(count: int) -> list[Point]:
    columns = max(1, math.ceil(math.sqrt(count)))
    return [(float(n % columns * CELL_WIDTH), float(n // columns * CELL_HEIGHT)) for n in range(count)]


def _apart(places: Sequence[Place]) -> list[Point]:
    """Return places scaled by the least factor that keeps devices apart; moved a little where that would be a lot."""
    wide, high = (max(p[axis] for p in places) - min(p[axis] for p in places) for axis in (0, 1))
    side = max(wide / CELL_WIDTH, high / CELL_HEIGHT)
    longest = _CELLS_A_SIDE * math.ceil(math.sqrt(len(places)))
    scale = _scale(places) if len(places) <= _PAIRS_MAX else math.inf
    if scale * side <= longest:
        return [(x * scale, y * scale) for x, y in places]
    return _on_cells([(x * longest / side, y * longest / side) for x, y in places])


def _spread(points: Sequence[Point]) -> list[Point]:
    """Return points moved apart until none covers another, their form kept."""
    scale = max(1.0, _scale(points))
    return [(x * scale, y * scale) for x, y in points]


def _scale(points: Sequence[Point] | Sequence[Place]) -> float:
    """Return the least factor by which no two devices cover each other; `inf` if two stand at one place."""
    least = 0.0
    for (x1, y1), (x2, y2) in combinations(points, 2):
        room = max(abs(x1 - x2) / CELL_WIDTH, abs(y1 - y2) / CELL_HEIGHT)
        least = max(least, 1 / room if room else math.inf)
    return least


def _on_cells(points: Iterable[Point]) -> list[Point]:
    """Return the middle of the free cell that is nearest to each point."""
    taken: set[tuple[int, int]] = set()
    found = []
    for x, y in points:
        column, row = round(x / CELL_WIDTH), round(y / CELL_HEIGHT)
        ring = 0
        while not (free := [cell for cell in _ring(column, row, ring) if cell not in taken]):
            ring += 1
        cell = min(free, key=lambda each: math.hypot(each[0] * CELL_WIDTH - x, each[1] * CELL_HEIGHT - y))
        taken.add(cell)
        found.append((float(cell[0] * CELL_WIDTH), float(cell[1] * CELL_HEIGHT)))
    return found


def _ring(column: int, row: int, distance: int) -> list[tuple[int, int]]:
    """Return the cells at a distance from one, in a fixed order."""
    if distance == 0:
        return [(column, row)]
    edge = range(-distance, distance + 1)
    sides = [(side, other) for side in (-distance, distance) for other in edge]
    return list(dict.fromkeys([(column + a, row + b) for a, b in sides] + [(column + b, row + a) for a, b in sides]))


def _shortened(label: str) -> str:
    """Return a label, with an ellipsis in the middle if it is too long: labels differ at both ends."""
    if len(label) <= _LABEL_CHARS_MAX:
        return label
    tail = (_LABEL_CHARS_MAX - 1) // 2
    return f"{label[: _LABEL_CHARS_MAX - 1 - tail]}…{label[len(label) - tail :]}"
