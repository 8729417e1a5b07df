"""Assets have names that change with their content, and templates escape what they show."""

import gzip
from pathlib import Path

import pytest
from aiohttp.test_utils import make_mocked_request

from vkprovider.portal.web.layout import HERE, PIECE, VIEWS, Assets, Layout, hashed_name, kind_of
from vkprovider.portal.web.visitors import BASE, link_to

FOLDERS = [HERE / "static", *(HERE / view / "static" for view in VIEWS)]


def folder(place: Path, **files: str) -> Path:
    place.mkdir()
    for name, text in files.items():
        (place / name.replace("_", ".")).write_text(text)
    return place


def test_a_changed_file_has_another_name(tmp_path: Path) -> None:
    one = Assets([folder(tmp_path / "a", site_css="a{}")]).path("site.css")
    other = Assets([folder(tmp_path / "b", site_css="b{}")]).path("site.css")
    assert one != other
    assert one.startswith("/static/site-")
    assert one.endswith(".css")


def test_two_files_of_one_name_are_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"two assets have the name site\.css"):
        Assets([folder(tmp_path / "a", site_css=""), folder(tmp_path / "b", site_css="")])


def test_a_folder_that_is_not_there_has_no_files(tmp_path: Path) -> None:
    assert Assets([tmp_path / "none"]).names == {}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("vendor/xterm.js", "text/javascript; charset=utf-8"),
        ("site.css", "text/css; charset=utf-8"),
        ("icon.svg", "image/svg+xml; charset=utf-8"),
        ("x.bin", "application/octet-stream"),
    ],
)
def test_what_a_file_is(name: str, kind: str) -> None:
    assert kind_of(name) == kind


def test_the_hash_keeps_the_folder() -> None:
    assert hashed_name("vendor/xterm.js", b"").startswith("vendor/xterm-")


async def test_what_is_served_is_the_file(tmp_path: Path) -> None:
    text = "a { color: red }\n" * 100
    assets = Assets([folder(tmp_path / "a", site_css=text)])
    name = assets.path("site.css").removeprefix("/static/")
    for sent, packed in (("gzip, br", True), ("identity", False)):
        asked = make_mocked_request("GET", f"/static/{name}", {"Accept-Encoding": sent}, match_info={"name": name})
        answer = await assets.serve(asked)
        body = answer.body  # type: ignore[attr-defined]  # (a whole answer)
        assert (gzip.decompress(body) if packed else body) == text.encode()
        assert answer.headers["Cache-Control"] == "public, max-age=31536000, immutable"
        assert ("Content-Encoding" in answer.headers) is packed


def test_words_of_a_refusal_are_text() -> None:
    layout = Layout(Assets(FOLDERS))
    for headers in ({}, {PIECE: "1"}):
        answer = layout.refusal(make_mocked_request("GET", "/", headers), 409, "<script>alert(1)</script>")
        assert answer.status == 409
        assert "&lt;script&gt;alert(1)" in str(answer.text)
        assert ("<html" in str(answer.text)) is not bool(headers)


def test_links_have_the_base_of_the_request() -> None:
    layout = Layout(Assets(FOLDERS))
    request = make_mocked_request("GET", "/")
    request[BASE] = "/services/vkprovider/"
    text = str(layout.refusal(request, 404, "x").text)
    assert 'href="/services/vkprovider/static/site-' in text
    assert 'href="/services/vkprovider/"' in text
    assert link_to("", "/labs/a") == "/labs/a"


def test_nonces_differ_and_are_allowed_for_styles_alone() -> None:
    layout = Layout(Assets(FOLDERS))
    request = make_mocked_request("GET", "/")
    one, other = (
        layout.render(request, "refusal.html", nonce=True, words="", headline="").headers["Content-Security-Policy"]
        for _ in range(2)
    )
    assert one != other
    assert "script-src 'self';" in one
    assert "style-src 'self' 'nonce-" in one
