"""The headers that every answer of the site has."""

from typing import Final

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'{nonce}; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": _POLICY.format(nonce=""),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",  # with no-referrer a browser hides the origin of forms
    "X-Content-Type-Options": "nosniff",
}
"""The headers; an answer may have others of these names."""


def policy(nonce: str = "") -> str:
    """Return the content security policy of a page; style elements with the nonce are allowed, if there is one."""
    return _POLICY.format(nonce=f" 'nonce-{nonce}'" if nonce else "")
