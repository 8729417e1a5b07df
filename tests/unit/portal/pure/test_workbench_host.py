"""What passes between a browser and a workbench, and who may ask at its origin."""

import pytest

from vkprovider.platform.wildcardhosts import WildcardHosts
from vkprovider.portal.pure.benchhost import cookie_of, may_pass, sent_back, sent_on
from vkprovider.portal.settings import PortalProcessSettings

KEY = "A" * 43 + "="


def test_nothing_that_proves_a_visitor_goes_to_a_workbench() -> None:
    sent = dict(
        sent_on(
            [
                ("Host", "alice.wb.example.com"),
                ("Authorization", "Bearer of-the-visitor"),
                ("Cookie", "__Host-vkprovider-0=secret; vkprovider-0=secret; jupyterhub-hub-login=secret; theme=dark"),
                ("Cookie", "__Secure-hub=secret"),
                ("X-Auth-Request-Token", "secret"),
                ("X-Auth-Request-User", "alice"),
                ("X-Forwarded-For", "192.0.2.1"),
                ("X-Remote-User", "alice"),
                ("Connection", "keep-alive, X-Hop"),
                ("X-Hop", "1"),
                ("Proxy-Authorization", "Basic secret"),
                ("Accept", "text/html"),
            ],
            "alice.wb.example.com",
            "https",
            "access",
        )
    )
    assert "secret" not in str(sent)
    assert "visitor" not in str(sent)
    assert sent == {
        "Host": "alice.wb.example.com",
        "Accept": "text/html",
        "Cookie": "theme=dark",
        "X-Forwarded-Host": "alice.wb.example.com",
        "X-Forwarded-Proto": "https",
        "Authorization": "token access",
    }


def test_a_workbench_sets_cookies_of_its_own_host_alone() -> None:
    answered = sent_back(
        [
            ("Content-Type", "text/html"),
            ("Set-Cookie", "theme=dark; Domain=example.com; Path=/"),
            ("Set-Cookie", "__Host-vkprovider-0=a; Secure; Path=/"),
            ("Set-Cookie", "vkprovider-workbench=a; Path=/"),
            ("Strict-Transport-Security", "max-age=1; includeSubDomains"),
            ("Transfer-Encoding", "chunked"),
        ]
    )
    assert answered == [("Content-Type", "text/html"), ("Set-Cookie", "theme=dark; Path=/")]


@pytest.mark.parametrize(
    ("method", "headers", "own", "passes"),
    [
        ("GET", {}, True, True),
        ("POST", {}, True, True),
        ("POST", {}, False, False),
        ("GET", {}, False, False),
        ("GET", {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, False, True),
        ("GET", {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}, False, False),
        ("POST", {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, False, False),
        ("GET", {"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "script"}, False, False),
        ("GET", {"Sec-Fetch-Mode": "websocket", "Upgrade": "websocket"}, False, False),
    ],
)
def test_no_page_of_a_sibling_acts_in_a_workbench(
    method: str, headers: dict[str, str], *, own: bool, passes: bool
) -> None:
    assert may_pass(method, headers, own=own) is passes


@pytest.mark.parametrize(
    "wrong", ["wb.example.com", "*", "*.", "https://*.wb.example.com/", "*.*.example.com", "*.a b"]
)
def test_only_a_wildcard_is_one(wrong: str) -> None:
    with pytest.raises(ValueError, match="is no wildcard host"):
        WildcardHosts.of(wrong)


def test_the_portal_is_at_none_of_these_hosts() -> None:
    env = {"VKPROVIDER_PORTAL_WORKBENCH_HOSTS": "*.wb.example.com", "VKPROVIDER_PORTAL_COOKIE_KEY": KEY}
    assert PortalProcessSettings.from_environment(env).portal.bench_hosts == WildcardHosts("https", "wb.example.com")
    for more, words in (
        ({"VKPROVIDER_PORTAL_URLS": "https://labs.wb.example.com"}, "names a host of VKPROVIDER_PORTAL_WORKBENCH"),
        ({"VKPROVIDER_PORTAL_COOKIE_KEY": ""}, "set VKPROVIDER_PORTAL_COOKIE_KEY"),
        ({"VKPROVIDER_PORTAL_WORKBENCH_HOSTS": "wb"}, "no wildcard host"),
    ):
        with pytest.raises(Exception, match=words):
            PortalProcessSettings.from_environment({**env, **more})


def test_no_sibling_sets_the_cookie_where_there_is_tls() -> None:
    assert (cookie_of("https"), cookie_of("http")) == ("__Host-vkprovider-workbench", "vkprovider-workbench")
