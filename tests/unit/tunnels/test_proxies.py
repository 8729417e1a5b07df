"""The table of proxies; each row is also what Go's `net/http.ProxyFromEnvironment` answers."""

import pytest

from tunnels.outgoing import ProxyUnsupportedError, proxy_of

P = "http://proxy:3128"
HTTPS = {"HTTPS_PROXY": P}
EXCEPTIONS = [
    # names, and names below them
    ("example.com", "example.com", True),
    ("a.example.com", "example.com", True),
    ("b.a.example.com", "example.com", True),
    ("notexample.com", "example.com", False),
    ("example.com.evil.org", "example.com", False),
    ("EXAMPLE.com", "Example.COM", True),
    # suffixes
    ("a.example.com", ".example.com", True),
    ("example.com", ".example.com", False),
    ("a.example.com", "*.example.com", True),
    ("example.com", "*.example.com", False),
    ("aexample.com", "*example.com", False),
    # lists, blanks, everything
    ("example.com", "a, b ,example.com", True),
    ("example.com", ",,", False),
    ("example.com", "*", True),
    ("10.1.2.3", "a,*,b", True),
    # addresses
    ("10.1.2.3", "10.1.2.3", True),
    ("10.1.2.3", "10.1.2.4", False),
    ("10.1.2.3", "10.1.2", False),
    ("[2001:db8::1]", "2001:db8::1", True),
    ("[2001:db8::1]", "2001:db8:0:0:0:0:0:1", True),
    ("[::ffff:10.1.2.3]", "10.1.2.3", True),
    ("[2001:db8::1]", "[2001:db8::1]", False),
    # CIDRs
    ("10.1.2.3", "10.0.0.0/8", True),
    ("11.1.2.3", "10.0.0.0/8", False),
    ("10.1.2.3", "10.1.2.99/24", True),
    ("10.1.2.3", "10.0.0.0/255.0.0.0", False),
    ("10.1.2.3", "10.0.0.0/33", False),
    ("10.1.2.3", "0.0.0.0/0", True),
    ("a.example.com", "0.0.0.0/0", False),
    ("[2001:db8::1]", "2001:db8::/32", True),
    ("[2001:db9::1]", "2001:db8::/32", False),
    ("10.1.2.3", "::/0", False),
    ("10.1.2.3", "::ffff:10.0.0.0/104", True),
    ("[::ffff:10.1.2.3]", "10.0.0.0/8", True),
    # ports
    ("a.example.com:6443", "a.example.com:6443", True),
    ("a.example.com:6443", "a.example.com:443", False),
    ("a.example.com", "a.example.com:443", True),
    ("a.example.com:6443", ".example.com:6443", True),
    ("a.example.com:6443", "a.example.com:", True),
    ("10.1.2.3:6443", "10.1.2.3:6443", True),
    ("10.1.2.3:6443", "10.1.2.3:443", False),
    ("[2001:db8::1]:6443", "[2001:db8::1]:6443", True),
    ("[2001:db8::1]:6443", "[2001:db8::1]:443", False),
    ("a.example.com:6443", ":6443", False),
    ("a.example.com", "a.example.com:443:1", False),
    # loopback is always direct
    ("localhost:8080", "", True),
    ("127.0.0.1", "", True),
    ("127.9.9.9:1", "", True),
    ("[::1]:6443", "", True),
    ("[::ffff:127.0.0.1]", "", True),
    ("localhost.example.com", "", False),
    ("127.0.0.1.example.com", "", False),
    # names that are not ASCII
    ("b\u00fccher.example", "xn--bcher-kva.example", True),
    ("xn--bcher-kva.example", "b\u00fccher.example", True),
    ("10.1.2.3", "a\u00b2.example/8", False),
]
"""Host, value of the variable, and whether the host is dialled without the proxy."""


@pytest.mark.parametrize(
    ("url", "environ", "proxy"),
    [
        ("https://a.example.com", {}, None),
        ("https://a.example.com", HTTPS, P),
        ("https://a.example.com", {"https_proxy": P}, P),
        ("https://a.example.com", {"HTTPS_PROXY": P, "https_proxy": "http://other"}, P),
        ("https://a.example.com", {"HTTPS_PROXY": "", "https_proxy": P}, P),
        ("https://a.example.com", {"HTTP_PROXY": P}, None),
        ("http://a.example.com", {"HTTP_PROXY": P}, P),
        ("http://a.example.com", {"http_proxy": P}, P),
        ("http://a.example.com", HTTPS, None),
        ("https://a.example.com", {"ALL_PROXY": P}, None),
        ("https://a.example.com", {"HTTPS_PROXY": "proxy:3128"}, P),
        ("https://a.example.com", {"HTTPS_PROXY": "10.0.0.9:3128"}, "http://10.0.0.9:3128"),
        ("https://a.example.com", {"HTTPS_PROXY": "http://u:p@proxy:3128"}, "http://u:p@proxy:3128"),
        ("https://a.example.com", {"HTTPS_PROXY": "https://proxy"}, "https://proxy"),
    ],
)
def test_the_variables(url: str, environ: dict[str, str], proxy: str | None) -> None:
    assert proxy_of(url, environ) == proxy


@pytest.mark.parametrize("name", ["NO_PROXY", "no_proxy"])
def test_no_proxy(name: str) -> None:
    answers = [
        (host, value, proxy_of(f"https://{host}", {**HTTPS, name: value}) is None) for host, value, _ in EXCEPTIONS
    ]
    assert answers == EXCEPTIONS


def test_the_first_variable_of_exceptions_counts() -> None:
    assert proxy_of("https://a", {**HTTPS, "NO_PROXY": "b", "no_proxy": "a"}) == P


def test_a_named_proxy_has_no_exceptions() -> None:
    environ = {"HTTPS_PROXY": "http://other", "NO_PROXY": "*"}
    assert proxy_of("https://127.0.0.1:6443", environ, named=P) == P


@pytest.mark.parametrize("proxy", ["socks5://u:secret@proxy:1080", "ftp://proxy"])
def test_a_proxy_of_another_kind_is_refused(proxy: str) -> None:
    with pytest.raises(ProxyUnsupportedError, match="http:// and https://") as caught:
        proxy_of("https://a", {"HTTPS_PROXY": proxy})
    assert "secret" not in str(caught.value)


def test_what_is_no_url_is_ignored_as_go_does_unless_it_was_named() -> None:
    assert proxy_of("https://a", {"HTTPS_PROXY": "[::1"}) is None
    with pytest.raises(ProxyUnsupportedError, match="not a URL"):
        proxy_of("https://a", {}, named="[::1")
