"""Services that are reached in plain text, so that others could read or change what is sent."""

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

_SENT: Final = {
    "LDS_API_URL": "tokens, sessions and the passwords of devices",
    "VKPROVIDER_GRADER_URL": "its token, and what learners leave",
    "S3_ENDPOINT": "content packages",
}
"""What goes to the service of a setting."""


def plain_text(urls: Mapping[str, str]) -> dict[str, str]:
    """Return for each setting whose URL is `http://`, but for loopback addresses, what could be read on the way.

    Args:
        urls: Values of settings by their variables; others than those of services are passed over.
    """
    return {
        name: f"{name} is http: {sent} can be read and changed on the way"
        for name, sent in _SENT.items()
        if is_plain(urls.get(name, ""))
    }


def is_plain(url: str) -> bool:
    """Return whether what is sent to a URL could be read on the way."""
    try:
        parts = urlsplit(url.strip())
        host = parts.hostname or ""
    except ValueError:
        return False  # refused elsewhere
    return parts.scheme.lower() == "http" and not is_loopback(host)


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
