"""A definition of a class is on the menu of its learners, and changes the menu of nobody else."""

import pytest

from tests.unit.portal.pure.menus import definition
from vkprovider.platform.objects import CustomResource
from vkprovider.portal.pure.config import PortalConfig
from vkprovider.portal.pure.menu import Menu, menu_of, offered_to, why_not_offered

COMMON = definition("netlab", "small", "1.0.0")
FRIDAY = definition("netlab", "small", "9.9.9", name="bgp", owner="friday")
KEPT = definition("ospf", "small", "1.0.0", name="ospf", owner="friday", shared=False)
MONDAY = definition("x", "small", "1.0.0", name="rip", owner="monday")
EVERY = [COMMON, FRIDAY, KEPT, MONDAY]


def menu(*classes: str, of: list[CustomResource] | None = None) -> Menu:
    return menu_of(offered_to(EVERY if of is None else of, classes), PortalConfig())


def test_learners_of_a_class_find_what_it_shares_beside_what_everybody_finds() -> None:
    assert [image.reference for image in menu().images] == ["netlab:1.0.0"]
    found = menu("friday")
    assert [image.reference for image in found.images] == ["netlab:1.0.0", "bgp:9.9.9"]
    assert found.images[1].sizes["small"].class_ == "friday"
    assert [image.reference for image in menu("friday", "monday").images] == ["netlab:1.0.0", "bgp:9.9.9", "rip:1.0.0"]


def test_a_class_adds_no_version_to_a_family_of_others_whatever_it_calls_its_definition() -> None:
    found = menu("friday")
    assert found.family == "netlab"
    assert [image.version.tag for image in found.images if image.family == "netlab"] == ["1.0.0"]
    named = definition("y", "small", "9.9.9", name="netlab", owner="friday")
    assert [image.reference for image in menu("friday", of=[named, COMMON]).images] == ["netlab:1.0.0"]


def test_a_right_to_use_definitions_concerns_those_of_the_admins() -> None:
    found = menu("friday")
    assert found.definitions == {"netlab-small"}
    assert [image.reference for image in found.only(()).images] == ["bgp:9.9.9"]


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (COMMON, ""),
        (FRIDAY, ""),
        (KEPT, "belongs to the class friday, which does not share it"),
        (definition("", "small", "1.0.0", name="a"), "has no label vkprovider.io/family"),
        (definition("a", "small"), "was never READY"),
    ],
)
def test_what_keeps_a_definition_off_all_menus(asked: CustomResource, why: str) -> None:
    assert why_not_offered(asked) == why
