"""The picture of a lab: everything is inside, nothing covers anything, and the author's picture is recognised."""

from itertools import combinations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vkprovider.portal.pure.picture import CELL_HEIGHT, CELL_WIDTH, Picture, Place, Spot, draw

places = st.none() | st.tuples(st.integers(-15000, 15000), st.integers(-15000, 15000))


def shown(*at: Place | None, links: tuple[tuple[str, str], ...] = ()) -> Picture:
    return draw(tuple((f"r{number}", place) for number, place in enumerate(at)), links)


def assert_readable(picture: Picture) -> None:
    for spot in picture.spots:
        assert CELL_WIDTH / 2 - 1 <= spot.x <= picture.width - CELL_WIDTH / 2 + 1, "with its label it is inside"
        assert CELL_HEIGHT / 2 - 1 <= spot.y <= picture.height - CELL_HEIGHT / 2 + 1
    for one, other in combinations(picture.spots, 2):
        apart = max(abs(one.x - other.x) / CELL_WIDTH, abs(one.y - other.y) / CELL_HEIGHT)
        assert apart >= 0.97, f"{one} covers {other}"


@given(st.lists(places, max_size=60))
@example([(0, 0)] * 13)
@example([(0, 0), (1, 0), (15000, 15000)])
@example([(0, 0), (0, 0), (1, 1), None])
@example([None])
def test_any_topology_makes_a_picture_that_can_be_read(at: list[Place | None]) -> None:
    picture = shown(*at)
    assert [spot.label for spot in picture.spots] == [f"r{number}" for number in range(len(at))]
    assert_readable(picture)


@given(st.lists(places, max_size=12))
def test_picture_depends_on_the_topology_alone(at: list[Place | None]) -> None:
    assert draw.__wrapped__(tuple((f"r{n}", place) for n, place in enumerate(at)), ()) == shown(*at)


def test_places_are_those_of_the_topology_to_scale() -> None:
    """Two hosts left and right of a router that stands above them."""
    router, left, right = shown((0, -100), (-200, 100), (200, 100)).spots
    assert left.x < router.x < right.x
    assert right.x - router.x == router.x - left.x
    assert router.y < left.y == right.y


def test_far_places_do_not_make_a_large_picture() -> None:
    assert shown((0, 0), (14000, 0)).width == shown((0, 0), (200, 0)).width == 2 * CELL_WIDTH


@pytest.mark.parametrize("count", [1, 2, 3, 12, 13, 50])
@pytest.mark.parametrize("place", [None, (7, 7)])
def test_devices_without_places_of_their_own_stand_on_a_circle_or_in_rows(count: int, place: Place | None) -> None:
    picture = shown(*[place] * count)
    assert_readable(picture)
    assert len({(spot.x, spot.y) for spot in picture.spots}) == count


def test_device_without_a_place_stands_below_the_others() -> None:
    *others, last = shown((0, 0), (100, 0), (0, 100), None).spots
    assert last.y > max(spot.y for spot in others)


def test_fifty_devices_fit_on_a_page() -> None:
    picture = shown(*[(100 * (n % 10), 80 * (n // 10)) for n in range(50)])
    assert picture.width <= 1500
    assert picture.height <= 900


def test_lines_join_the_devices_and_lead_nowhere_else() -> None:
    """A release before this one may have left links of an earlier version in the status."""
    picture = shown((0, 0), (200, 0), links=(("r0", "r1"), ("r0", "gone"), ("r1", "r1")))
    [line] = picture.joints
    assert (line.x1, line.y1, line.x2, line.y2) == (picture.spots[0].x, picture.spots[0].y, *picture.spots[1][2:4])


def test_long_label_keeps_both_ends() -> None:
    [spot] = draw((("core-router-of-building-17", None),), ()).spots
    assert spot == Spot("core-router-of-building-17", "core-ro…ding-17", spot.x, spot.y)


def test_five_hundred_devices_at_one_place_are_drawn_soon() -> None:
    assert_readable(shown(*[(n // 250, 0) for n in range(500)]))
