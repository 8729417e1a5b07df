"""Which requests a page of the site makes, and where the login leads."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from vkprovider.platform.http.origin import is_loopback, is_own, keeps_cookies, leads_on, safe_next
from vkprovider.platform.siteaddress import SiteAddress, address_used, addresses_of

HOST = "labs.example.com"


@pytest.mark.parametrize(
    ("headers", "own"),
    [
        ({"Sec-Fetch-Site": "same-origin"}, True),
        ({"Sec-Fetch-Site": "none"}, True),
        ({"Sec-Fetch-Site": "same-origin", "Origin": "https://proxy.example.com"}, True),
        ({"Sec-Fetch-Site": "same-site", "Origin": "https://labs.example.com"}, False),
        ({"Sec-Fetch-Site": "cross-site", "Origin": "https://labs.example.com"}, False),
        ({"Sec-Fetch-Site": ""}, False),
        ({"Origin": "https://labs.example.com"}, True),
        ({"Origin": "https://LABS.example.com"}, True),
        ({"Origin": "https://labs.example.com:8443"}, False),
        ({"Origin": "https://labs.example.com.evil.example"}, False),
        ({"Origin": "https://evil.example"}, False),
        ({"Origin": "null"}, False),
        ({"Origin": "https://["}, False),
        ({"Origin": ""}, False),
        ({}, False),
        ({"Referer": "https://labs.example.com/login"}, False),
    ],
)
def test_who_made_a_request(headers: dict[str, str], own: bool) -> None:  # noqa: FBT001 (a column of the table)
    assert is_own(headers, HOST) is own


def test_without_a_host_nothing_is_own() -> None:
    assert not is_own({"Origin": "null"}, "")


@pytest.mark.parametrize(
    ("path", "led"),
    [
        ("/labs/alice", "/labs/alice"),
        ("/classes/net101?sort=left&state=failed", "/classes/net101?sort=left&state=failed"),
        ("/labs/a%2Fb", "/labs/a%2Fb"),
        ("/", "/"),
        ("", "/"),
        ("//evil.example", "/"),
        ("///evil.example", "/"),
        ("/\\evil.example", "/"),
        ("/a\\..\\evil", "/"),
        ("/\t/evil.example", "/"),
        ("/\n/evil.example", "/"),
        ("\t//evil.example", "/"),
        (" //evil.example", "/"),
        ("https://evil.example", "/"),
        ("https:evil.example", "/"),
        ("javascript:alert(1)", "/"),
        ("evil.example", "/"),
        ("/login", "/"),
        ("/login/AAAAAAAAAAAAAAAAAAAAAAAA", "/"),
        ("/logout", "/"),
        ("/\u2215/evil.example", "/"),
    ],
)
def test_where_the_login_leads(path: str, led: str) -> None:
    assert safe_next(path) == led


@pytest.mark.parametrize(
    ("path", "there"),
    [
        ("/labs/alice/", "/labs/alice"),
        ("/classes//", "/classes"),
        ("/login/?next=/labs/", "/login?next=/labs/"),
        ("/", None),
        ("/classes", None),
        ("/classes?next=/", None),
        ("//evil.example/", None),
        ("/\\evil.example/", None),
        ("///", None),
    ],
)
def test_a_slash_at_the_end_leads_to_the_path_without(path: str, there: str | None) -> None:
    assert leads_on(path) == there


@given(path=st.text(st.sampled_from("/\\:@.?#%\t\n\r evil\u2028\u3002"), max_size=12))
def test_the_login_never_leads_elsewhere(path: str) -> None:
    assert URL("https://labs.example.com/login").join(URL(safe_next(path))).host == HOST


@pytest.mark.parametrize(
    ("origin", "kept"),
    [
        ("https://labs.example.com", True),
        ("http://labs.example.com", False),
        ("http://labs.example.com:8083", False),
        ("http://localhost:8083", True),
        ("http://127.0.0.1", True),
        ("http://[::1]:8083", True),
        ("http://localhost.evil.example", False),
        ("", True),
        ("null", True),
    ],
)
def test_which_browsers_keep_a_secure_cookie(origin: str, kept: bool) -> None:  # noqa: FBT001 (a column of the table)
    assert keeps_cookies({"Origin": origin}) is kept


@pytest.mark.parametrize(
    ("host", "own"),
    [
        ("localhost", True),
        ("LocalHost:8083", True),
        ("127.0.0.1:8083", True),
        ("[::1]", True),
        ("[::1]:8083", True),
        ("labs.example.com", False),
        ("localhost.example.com:80", False),
        ("127.0.0.1.example.com", False),
        ("", False),
    ],
)
def test_which_host_is_the_own_machine(host: str, own: bool) -> None:  # noqa: FBT001 (a column of the table)
    assert is_loopback(host) is own


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://labs.example.com", SiteAddress("https", "labs.example.com")),
        ("https://Labs.example.com:443/", SiteAddress("https", "labs.example.com")),
        ("http://127.0.0.1:8080/a/b/", SiteAddress("http", "127.0.0.1:8080", "/a/b")),
        ("https://[2001:db8::1]:8443/x", SiteAddress("https", "[2001:db8::1]:8443", "/x")),
    ],
)
def test_an_address_of_the_site_is_read(url: str, expected: SiteAddress) -> None:
    assert addresses_of(f" {url} ,") == (expected,)


@pytest.mark.parametrize(
    "url",
    [
        "labs.example.com",
        "ftp://a",
        "https://",
        "https://u@a",
        "https://a?b",
        "https://a#b",
        "https://a:x",
    ],
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"is not a URL|Port could not be cast"):
        addresses_of(url)


FRONT = addresses_of("https://labs.example.com, https://example.com/labs, https://example.com/lab")


@pytest.mark.parametrize(
    ("headers", "host", "left", "expected"),
    [
        ({}, "10.0.0.1:8083", "", FRONT[0]),
        ({}, "example.com", "", FRONT[1]),
        ({}, "EXAMPLE.com", "", FRONT[1]),
        ({"X-Forwarded-Host": "example.com"}, "10.0.0.1:8083", "", FRONT[1]),
        ({"X-Forwarded-Host": "evil.example"}, "10.0.0.1:8083", "", FRONT[0]),
        ({}, "10.0.0.1:8083", "/labs", FRONT[1]),
        ({}, "10.0.0.1:8083", "/lab", FRONT[2]),
        ({}, "labs.example.com", "/labs", FRONT[1]),
        ({}, "labs.example.com", "/services/vkprovider", FRONT[0]),
        ({"Origin": "https://labs.example.com"}, "10.0.0.1:8083", "", FRONT[0]),
        ({"Origin": "https://Example.com"}, "labs.example.com", "", FRONT[1]),
        ({"Origin": "http://labs.example.com"}, "labs.example.com", "", None),
        ({"Origin": "https://evil.example", "X-Forwarded-Host": "labs.example.com"}, "labs.example.com", "", None),
        ({"Origin": "http://localhost:8083"}, "localhost:8083", "", None),
    ],
)
def test_the_address_is_that_of_the_browser(
    headers: dict[str, str], host: str, left: str, expected: SiteAddress | None
) -> None:
    assert address_used(FRONT, headers, host, left) == expected
