"""What differs between two renderings, and that a page which applies it shows the new one."""

from hypothesis import given
from hypothesis import strategies as st

from vkprovider.portal.web.live.topics import ListChange, PageChange, Put, Rendered, all_of, difference

_IDS = st.sampled_from(["a", "b", "c", "d", "e"])
_HTML = st.sampled_from(["<p>1</p>", "<p>2</p>", "<p>3</p>"])
_LISTS = st.dictionaries(_IDS, _HTML)
_RENDERED = st.builds(Rendered, st.fixed_dictionaries({"state": _HTML}), st.fixed_dictionaries({"rows": _LISTS}))


def shown_by(page: Rendered, change: PageChange, *, whole: bool) -> Rendered:
    """Return what a page shows after a change, as `swap.js` applies it."""
    elements = {**page.elements, **change.elements}
    lists = {}
    for parent, its in page.lists.items():
        found = change.lists.get(parent, ListChange())
        put = {key for key, _, _ in found.put}
        order = [
            key for key in its if key not in found.gone and (key in put or not whole or parent not in change.lists)
        ]
        html = dict(its)
        for key, text, after in found.put:
            html[key] = text
            if key in order:
                order.remove(key)
            order.insert(order.index(after) + 1 if after else 0, key)
        lists[parent] = {key: html[key] for key in order}
    return Rendered(elements, lists)


def ordered(page: Rendered) -> object:
    return page.elements, [(parent, list(its.items())) for parent, its in page.lists.items()]


@given(_RENDERED, _RENDERED)
def test_a_page_that_applies_the_difference_shows_the_new_rendering(old: Rendered, new: Rendered) -> None:
    assert ordered(shown_by(old, difference(old, new), whole=False)) == ordered(new)


@given(_RENDERED, _RENDERED)
def test_a_page_that_shows_anything_shows_the_new_rendering_after_all_of_it(old: Rendered, new: Rendered) -> None:
    assert ordered(shown_by(old, all_of(new), whole=True)) == ordered(new)


@given(_RENDERED, _RENDERED)
def test_equal_renderings_alone_have_one_version_and_no_difference(old: Rendered, new: Rendered) -> None:
    same = ordered(old) == ordered(new)
    assert (old.version() == new.version()) is same
    assert (difference(old, new) == PageChange()) is same


def test_a_row_that_changes_and_moves_is_sent_alone() -> None:
    rows = {f"row-{number:04}": f"<tr>{number}</tr>" for number in range(2000)}
    moved = {"row-1234": "<tr>failed</tr>", **{key: html for key, html in rows.items() if key != "row-1234"}}
    change = difference(Rendered({}, {"rows": rows}), Rendered({}, {"rows": moved}))
    assert change.lists["rows"] == ListChange((Put("row-1234", "<tr>failed</tr>", ""),))
