"""The content security policy of pages."""

import pytest

from vkprovider.portal.web.layout import policy


def directives(text: str) -> dict[str, str]:
    return dict(each.strip().split(" ", 1) for each in text.split(";"))


@pytest.mark.parametrize("nonce", ["", "abc"])
@pytest.mark.parametrize("framed", [False, True])
def test_a_page_runs_only_what_the_site_serves(nonce: str, *, framed: bool) -> None:
    found = directives(policy(nonce, framed=framed))
    assert found["default-src"] == "'none'"
    assert found["script-src"] == "'self'"
    assert found["style-src"] == ("'self' 'nonce-abc'" if nonce else "'self'")
    assert found["frame-ancestors"] == ("'self'" if framed else "'none'")
    assert "unsafe" not in str(found)
    assert {found[name] for name in ("img-src", "connect-src", "frame-src", "form-action")} == {"'self'"}
    assert found["base-uri"] == "'none'"
