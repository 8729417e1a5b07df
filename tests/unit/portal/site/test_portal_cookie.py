"""Cookies of a session: only what this portal wrote, unchanged and in time, is somebody."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vkprovider.portal.web import cookie
from vkprovider.portal.web.cookie import (
    CHUNKS_MAX,
    SESSION_S_MAX,
    TOKEN_CHARS_MAX,
    LoginSession,
    is_marked,
    keys_of,
    mark,
)

KEY = keys_of(b"k" * 32).session
NAME = "session"
NOW = 1_800_000_000.0


def jwt(claims: object) -> str:
    body = urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"e30.{body}.c2ln"


def written(token: str = "a-token", now: float = NOW) -> dict[str, str]:  # noqa: S107 (made up)
    return cookie.written(KEY, NAME, cookie.session_of(token, now))


@pytest.mark.parametrize(
    ("token", "lasts_s"),
    [
        ("opaque", SESSION_S_MAX),
        (jwt({"exp": NOW + 600}), 600),
        (jwt({"exp": NOW + 30 * 86400}), SESSION_S_MAX),
        (jwt({"exp": NOW - 1}), -1),
        (jwt({}), SESSION_S_MAX),
        (jwt({"exp": "soon"}), SESSION_S_MAX),
        (jwt(["exp"]), SESSION_S_MAX),
        ("a.b.c", SESSION_S_MAX),
        ("a.\u00e9.c", SESSION_S_MAX),
    ],
)
def test_a_session_ends_with_its_token_and_after_twelve_hours(token: str, lasts_s: float) -> None:
    assert cookie.session_of(token, NOW).expires_at - NOW == lasts_s


@given(token=st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=TOKEN_CHARS_MAX))
def test_what_is_written_is_read(token: str) -> None:
    session = LoginSession(token, NOW + 60, "id")
    cookies = cookie.written(KEY, NAME, session)
    assert cookie.read(KEY, NAME, {**cookies, "other": "x"}, NOW) == session


def test_the_longest_token_fits_into_cookies_and_header() -> None:
    cookies = written("x" * TOKEN_CHARS_MAX)
    assert len(cookies) <= CHUNKS_MAX
    assert all(len(f"{name}={text}") < 4096 - 100 for name, text in cookies.items())
    assert len("; ".join(f"{name}={text}" for name, text in cookies.items())) < 20 * 1024 - 2000


def test_two_sessions_of_a_token_look_different_and_show_nothing_of_it() -> None:
    one, other = written("a-token" * 100), written("a-token" * 100)
    assert one != other
    assert b"a-token" not in b"".join(urlsafe_b64decode(each.removeprefix("1.") + "==") for each in one.values())


def test_an_expired_session_is_nobody() -> None:
    cookies = written()
    assert cookie.read(KEY, NAME, cookies, NOW + SESSION_S_MAX - 1) is not None
    assert cookie.read(KEY, NAME, cookies, NOW + SESSION_S_MAX) is None


def test_another_key_or_another_name_opens_nothing() -> None:
    cookies = written()
    assert cookie.read(keys_of(b"o" * 32).session, NAME, cookies, NOW) is None
    renamed = {name.replace(NAME, "other"): text for name, text in cookies.items()}
    assert cookie.read(KEY, "other", renamed, NOW) is None


@pytest.mark.parametrize("length", [10, 5_000])
def test_any_changed_bit_opens_nothing(length: int) -> None:
    cookies = written("x" * length)
    for name, text in cookies.items():
        start = text.index(".") + 1 if "." in text else 0
        for at in range(start, len(text), max(1, len(text) // 60)):
            changed = text[:at] + ("A" if text[at] != "A" else "Q") + text[at + 1 :]
            assert cookie.read(KEY, NAME, {**cookies, name: changed}, NOW) is None, (name, at)


def test_a_part_that_is_missing_swapped_or_cut_opens_nothing() -> None:
    cookies = written("x" * 8_000)
    names = sorted(cookies)
    assert len(names) == 3
    for name in names:
        assert cookie.read(KEY, NAME, {each: cookies[each] for each in names if each != name}, NOW) is None
        assert cookie.read(KEY, NAME, {**cookies, name: cookies[name][:-1]}, NOW) is None
    swapped = {**cookies, names[1]: cookies[names[2]], names[2]: cookies[names[1]]}
    assert cookie.read(KEY, NAME, swapped, NOW) is None
    other = written("x" * 8_000)
    assert cookie.read(KEY, NAME, {**cookies, names[1]: other[names[1]]}, NOW) is None


@pytest.mark.parametrize(
    "text", ["", ".", "1.", "0.AAAA", "9.AAAA", "-1.AAAA", "1.\u00e9", "1.A", "x.AAAA", "1." + "A" * 100]
)
def test_rubbish_is_nobody(text: str) -> None:
    assert cookie.read(KEY, NAME, {f"{NAME}-0": text}, NOW) is None


@given(cookies=st.dictionaries(st.sampled_from([f"{NAME}-{at}" for at in range(5)]), st.text(max_size=50)))
def test_no_cookies_make_it_raise(cookies: dict[str, str]) -> None:
    assert cookie.read(KEY, NAME, cookies, NOW) is None


def test_each_purpose_has_a_key_of_its_own() -> None:
    keys = keys_of(b"k" * 32)
    assert len({*keys}) == len(keys)
    assert keys == keys_of(b"k" * 32)
    sent = mark(keys.form, "session")
    assert is_marked(keys.form, "session", sent)
    for wrong in ("", sent[:-1], sent + "A", mark(keys.form, "sessio"), mark(keys.code, "session"), "\u00e9"):
        assert not is_marked(keys.form, "session", wrong)
