"""The headers that every answer of the site has."""

from typing import Final

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'{nonce}; img-src 'self'; connect-src 'self'; "
    "frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors {framed}"
)


def policy(nonce: str = "", *, framed: bool = False) -> str:
    """Return the content security policy of a page.

    Args:
        nonce: Style elements with this nonce are allowed; "" for none.
        framed: Whether another page of the site may show it in a frame.
    """
    return _POLICY.format(nonce=f" 'nonce-{nonce}'" if nonce else "", framed="'self'" if framed else "'none'")


HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": policy(),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",  # with no-referrer a browser hides the origin of forms
    "X-Content-Type-Options": "nosniff",
}
"""The headers; an answer may have others of these names."""
