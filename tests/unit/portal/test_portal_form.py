"""The form of the request for a lab (R002-035, R002-050): well-formed, escaped, and accepted as a hub sends it."""

from html.parser import HTMLParser
from urllib.parse import parse_qs, urlencode

import pytest

from vkprovider.portal.api.bodies import form_html
from vkprovider.portal.pure.form import FormEntry, FormOffer
from vkprovider.portal.pure.options import USE_DROPDOWN, LabWish, parse

OFFER = FormOffer(
    images=(FormEntry("net:2.0", "net: 2.0", usual=True), FormEntry("net:w_1", "net: weekly 1")),
    others=(FormEntry("net:2.0", "net: 2.0"), FormEntry("net:1.0", "net: 1.0")),
    sizes=(FormEntry("small", "small (1 CPU, 2Gi)", usual=True), FormEntry("large", "large (4 CPUs, 8Gi)")),
)


class Browser(HTMLParser):
    """A browser that fills in nothing: it sends what is checked, and the first option of a list."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.values: dict[str, list[str]] = {}
        self.sent: list[tuple[str, str]] = []
        self.labels: set[str] = set()
        self.ids: set[str] = set()
        self._select = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.tags.append(tag)
        if tag == "label":
            self.labels.add(given["for"])
        if tag == "input":
            self.ids.add(given["id"])
            self.values.setdefault(given["name"], []).append(given["value"])
            if "checked" in given:
                self.sent.append((given["name"], given["value"]))
        if tag == "select":
            self._select = given["name"]
        if tag == "option":
            if self._select not in self.values:
                self.sent.append((self._select, given["value"]))
            self.values.setdefault(self._select, []).append(given["value"])


def test_it_offers_images_and_sizes_and_labels_each() -> None:
    found = Browser(form_html(OFFER))
    assert found.values == {
        "image_list": ["net:2.0", "net:w_1", USE_DROPDOWN],
        "image_dropdown": ["net:2.0", "net:1.0"],
        "size": ["small", "large"],
    }
    assert found.ids == found.labels


def test_what_a_browser_sends_untouched_is_a_request() -> None:
    options = parse_qs(urlencode(Browser(form_html(OFFER)).sent))
    wanted = parse({"options": options})
    assert isinstance(wanted, LabWish)
    assert (wanted.image, wanted.size) == ("net:2.0", "small")


def test_the_dropdown_counts_if_it_is_chosen() -> None:
    options = {"image_list": [USE_DROPDOWN], "image_dropdown": ["net:1.0"], "size": ["large"]}
    wanted = parse({"options": options})
    assert isinstance(wanted, LabWish)
    assert wanted.image == "net:1.0"


@pytest.mark.parametrize("evil", ['"><script>alert(1)</script>', "'\" onclick=x", "&amp;", "</fieldset>"])
def test_nothing_of_a_definition_becomes_a_tag(evil: str) -> None:
    entry = FormEntry(evil, evil)
    plain = Browser(
        form_html(OFFER._replace(images=(OFFER.images[1],), others=OFFER.others[:1], sizes=OFFER.sizes[:1]))
    )
    found = Browser(form_html(FormOffer((entry,), (entry,), (entry,))))
    assert found.tags == plain.tags
    assert found.values == {"image_list": [evil, USE_DROPDOWN], "image_dropdown": [evil], "size": [evil]}


def test_without_a_lab_it_says_why_and_has_no_field() -> None:
    text = form_html(FormOffer(unavailable="Your quota allows no <lab>."))
    assert "Your quota allows no &lt;lab&gt;." in text
    assert Browser(text).tags == ["p"]
