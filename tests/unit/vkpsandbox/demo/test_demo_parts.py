"""A part of a demo is told as it is written."""

import pytest

from vkpsandbox.demo.deployment import Deployed
from vkpsandbox.demo.hub import Campus
from vkpsandbox.demo.mux import Lent
from vkpsandbox.demo.portal import Requested
from vkpsandbox.demo.stage import Part


def kill() -> None:
    """Kill the provider.

    It decides who may have a number,
    and carries no connection.
    """


def unsaid() -> None:
    """Kill the provider."""


def test_heading_and_reason_are_those_of_the_docstring() -> None:
    assert Part.of(kill) == [
        Part("Kill the provider", "It decides who may have a number, and carries no connection.", kill)
    ]


def test_a_part_that_gives_no_reason_is_found_before_the_first_is_shown() -> None:
    with pytest.raises(ValueError, match="unpack"):
        Part.of(kill, unsaid)


@pytest.mark.parametrize("demo", [Deployed, Lent, Requested, Campus])
def test_every_part_of_a_demo_gives_one(demo: type[Deployed | Lent | Requested | Campus]) -> None:
    parts = demo.parts(demo.__new__(demo))  # type: ignore[arg-type]
    assert len(parts) >= 4
    assert all(part.heading and part.why for part in parts)
