"""Which variables a lab has, in which order sources count, and what definitions ask for (R002-056 to R002-058)."""

import pytest

from tests.unit.portal.pure.menus import definition, menu
from vkprovider.lablet.models.definition import parse_definition_spec
from vkprovider.lablet.models.parameters import ParameterSpec, fault_of
from vkprovider.platform.errors import InputError
from vkprovider.portal.api.bodies import form_html
from vkprovider.portal.pure.config import SECRET_ENV, LabQuota
from vkprovider.portal.pure.environment import answered, merged, said_of
from vkprovider.portal.pure.form import offer
from vkprovider.portal.pure.leading import warm_images
from vkprovider.portal.pure.menu import LabChoice, Menu, menu_of, resolve, why_not_offered
from vkprovider.portal.pure.options import Grounds, ImageBy, LabWish, Rejection, parse

ASKS = [
    {"name": "SEAT", "type": "integer", "help": "The number on your desk."},
    {"name": "SITE", "default": "campus-1", "pattern": "campus-[0-9]"},
    {"name": "ENABLE_PASSWORD", "default": "cisco"},
]


def asking(*parameters: dict[str, str], **config: object) -> Menu:
    plain, asks = definition("plain", "small", "1.0"), definition("netlab", "small", "1.0")
    asks.spec["parameters"] = list(parameters)
    return menu(asks, plain, **config)


def chosen(found: Menu, wanted: LabWish) -> LabChoice:
    choice = resolve(found, wanted, LabQuota())
    assert isinstance(choice, LabChoice)
    return choice


def wish(family: str = "netlab", **parameters: str) -> LabWish:
    return LabWish(ImageBy.REFERENCE, f"{family}:1.0", "small", parameters=parameters)


def test_a_later_source_counts_and_secret_names_go_apart() -> None:
    """R002-056, R002-058."""
    hub = {"A": "hub", "B": "hub", "HUB_API_TOKEN": "t", "MEM_LIMIT": "0"}
    found = merged([hub, {"B": "field", "C": "field"}, {"MEM_LIMIT": "5"}, {"C": "config"}], SECRET_ENV)
    assert found.plain == {"A": "hub", "B": "field", "C": "config", "MEM_LIMIT": "5"}
    assert found.secret == {"HUB_API_TOKEN": "t"}
    assert merged([hub], ["a"]).secret == {"A": "hub"}, "the configuration says what is secret"


def test_the_portal_says_amounts_image_and_options() -> None:
    """R002-057."""
    wanted = wish()._replace(enable_debug=True)
    choice = chosen(asking(), wanted)
    assert said_of(choice, wanted) == {
        "MEM_LIMIT": str(2 * 2**30),
        "MEM_GUARANTEE": str(2 * 2**30),
        "CPU_LIMIT": "1",
        "CPU_GUARANTEE": "1",
        "IMAGE_DESCRIPTION": "netlab: Release 1.0",
        "IMAGE_DIGEST": "sha256:netlab-small-1.0",
        "LAB_SIZE": "small",
        "DEBUG": "TRUE",
    }
    reset = wish()._replace(reset_user_env=True)
    assert said_of(choice, reset).keys() - said_of(choice, None).keys() == {"RESET_USER_ENV"}


def test_a_field_counts_before_the_requests_variable_and_that_before_the_default() -> None:
    found = asking(*ASKS)
    wanted = wish(SEAT="7")._replace(env={"SEAT": "8", "SITE": "campus-2"})
    assert answered(chosen(found, wanted), wanted, {}) == {
        "SEAT": "7",
        "SITE": "campus-2",
        "ENABLE_PASSWORD": "cisco",
    }
    assert answered(chosen(found, wanted), wish(), {"SEAT": "1", "SITE": "x"}) == {"ENABLE_PASSWORD": "cisco"}


@pytest.mark.parametrize(
    ("given", "field", "words"),
    [
        ({}, "SEAT", "SEAT: a value is missing (The number on your desk.)"),
        ({"SEAT": "three"}, "SEAT", "SEAT: it is no whole number; write one such as 3 (The number on your desk.)"),
        ({"SEAT": "3", "SITE": "campus-10"}, "SITE", "SITE: it does not match campus-[0-9]"),
        ({"SEAT": "3", "RACK": "1"}, "RACK", "netlab:1.0 asks for no 'RACK'; it asks for SEAT, SITE, ENABLE_PASSWORD"),
    ],
)
def test_what_does_not_fit_is_refused_at_its_field(given: dict[str, str], field: str, words: str) -> None:
    wanted = wish(**given)
    found = answered(chosen(asking(*ASKS), wanted), wanted, {})
    assert found == Rejection(Grounds.INVALID_BODY, words, ("body", "options", f"parameter.{field}"))
    strange = answered(chosen(asking(), wish("plain", X="1")), wish("plain", X="1"), {})
    assert isinstance(strange, Rejection)
    assert strange.msg == "plain:1.0 asks for no 'X'; it asks for none"


def test_fields_come_as_options_of_a_body_plain_or_as_a_form_sends_them() -> None:
    options = {"image_tag": "1.0", "parameter.SEAT": 7, "parameter.ON": True, "parameter.A": ["x"], "parameter.B": [""]}
    wanted = parse({"options": options})
    assert isinstance(wanted, LabWish)
    assert wanted.parameters == {"SEAT": "7", "ON": "true", "A": "x"}
    assert not isinstance(parse({"options": {"image_tag": "1.0", "parameters": {"A": "x"}}}), LabWish)


@pytest.mark.parametrize(
    ("spec", "value", "fits"),
    [
        ({"type": "boolean"}, "true", True),
        ({"type": "boolean"}, "yes", False),
        ({"type": "integer"}, "-12", True),
        ({"type": "integer"}, "1.5", False),
        ({}, "any text, ü", True),
        ({}, "two\nlines", False),
        ({}, "x" * 1001, False),
        ({"pattern": "a|bc"}, "bc", True),
        ({"pattern": "a|bc"}, "abc", False),
        ({"pattern": "(x+x+)+y"}, "x" * 900, False),
    ],
)
def test_a_value_is_of_its_type_one_line_and_of_its_pattern_as_a_whole(
    spec: dict[str, str],
    value: str,
    fits: bool,  # noqa: FBT001 (a table)
) -> None:
    assert (fault_of(ParameterSpec.model_validate({"name": "A", **spec}), value) == "") is fits


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ([{"name": "A"}, {"name": "A"}], "A is declared twice"),
        ([{"name": "A", "pattern": "("}], "pattern of A cannot be used"),
        ([{"name": "A", "pattern": "(?=a)"}], "pattern of A cannot be used"),
        ([{"name": "A", "type": "integer", "default": "x"}], "default of A: it is no whole number"),
        ([{"name": "1A"}], "parameters"),
    ],
)
def test_a_declaration_that_cannot_be_used_is_named(parameters: list[dict[str, str]], words: str) -> None:
    spec = {"version": "1", "source": {"inline": "lab: {}"}, "parameters": parameters}
    with pytest.raises(InputError, match=words):
        parse_definition_spec(spec)


def test_a_definition_whose_fields_cannot_be_read_is_on_no_menu() -> None:
    asks = definition("netlab", "small", "1.0")
    asks.spec["parameters"] = [{"name": "A", "pattern": "("}]
    assert menu_of([asks], menu().config).images == ()
    assert why_not_offered(asks) == "declares spec.parameters that cannot be read"


def test_no_lab_of_a_definition_that_asks_waits_for_users() -> None:
    """Its lab would be imported before anybody has answered."""
    assert warm_images(asking(warm={"netlab": 2})) == {"netlab": ("netlab-small:1.0", 2)}
    assert warm_images(asking(*ASKS, warm={"netlab": 2})) == {}


def test_the_form_asks_for_each_variable_once_and_hides_secret_ones() -> None:
    found = offer(asking(*ASKS, env={"SITE": "x"}), LabQuota(), [])
    [seat, password] = found.fields
    assert (seat.name, seat.kind, seat.images) == ("parameter.SEAT", "integer", ("netlab: Release 1.0",))
    assert (password.secret, seat.secret) == (True, False)
    html = form_html(found)
    assert 'name="parameter.SEAT" id="field-1" type="text"' in html
    assert "The number on your desk." in html
    assert 'type="password"' in html
    assert "cisco" not in html
