"""Forms as clients send them: httpx's, for any fields and files; and whatever is none is refused, never more."""

import contextlib

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vkprovider.platform.http.bodies import FORM, FORM_WITH_FILES, BodyInvalid, File, parse_form

TEXT = st.text(st.characters(codec="utf-8"), max_size=50)
NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1, max_size=20)


@given(text=TEXT, content=st.binary(max_size=300), name=NAMES)
def test_a_form_with_a_file_is_read_as_it_was_sent(text: str, content: bytes, name: str) -> None:
    request = httpx.Request("POST", "http://x/", data={"names": text, "more": "y"}, files={"file": (name, content)})
    form = parse_form(request.headers["Content-Type"], request.read())
    assert (form["names"], form["more"]) == (text, "y")
    file = form["file"]
    assert isinstance(file, File)
    assert file.content == content
    assert file.name


@given(fields=st.dictionaries(TEXT.filter(bool), TEXT, max_size=5))
def test_a_form_is_read_as_it_was_sent(fields: dict[str, str]) -> None:
    request = httpx.Request("POST", "http://x/", data=fields)
    assert dict(parse_form(FORM, request.read())) == fields


@given(raw=st.binary(max_size=200), head=st.sampled_from([b"", b"--b\r\n", b"--b\r\nContent-Disposition: form-data"]))
def test_nonsense_is_refused_and_does_no_more(raw: bytes, head: bytes) -> None:
    for content_type in (FORM, f"{FORM_WITH_FILES}; boundary=b", FORM_WITH_FILES):
        with contextlib.suppress(BodyInvalid):
            parse_form(content_type, head + raw)


@pytest.mark.parametrize(
    "raw",
    [
        b"\r\n--b--\r\n",
        b"--b\r\n\r\nvalue\r\n--b--\r\n",
        b"--b\r\nContent-Disposition: form-data\r\n\r\nvalue\r\n--b--\r\n",
        b"--b\r\nContent-Disposition: form-data; name=a\r\n\r\nvalue",
        b'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n\xff\r\n--b--\r\n',
        b"--b\r\nContent-Disposition: form-data; name=a\r\n\r\nv\r\n" * 40 + b"--b--\r\n",
        b"--b\r\nContent-Disposition: form-data; name=a" + b" " * 5000 + b"\r\n\r\nv\r\n--b--\r\n",
        b"",
    ],
)
def test_what_is_no_form_with_files_is_refused(raw: bytes) -> None:
    with pytest.raises(BodyInvalid, match="the form cannot be read"):
        parse_form(f"{FORM_WITH_FILES}; boundary=b", raw)
