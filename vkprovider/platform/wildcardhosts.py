"""Hosts under a wildcard, each an origin of its own for browsers, such as those of `*.wb.example.com`."""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple, Self
from urllib.parse import urlsplit

_PATTERN: Final = re.compile(r"(?:(https?)://)?\*\.([a-z0-9-]+(?:\.[a-z0-9-]+)*)(:[0-9]{1,5})?")


class WildcardHosts(NamedTuple):
    """Hosts that differ by their first label.

    Attributes:
        scheme: Of their addresses.
        domain: What follows the label and a dot.
        port: A colon and the port of their addresses; "" for that of the scheme.
    """

    scheme: str
    domain: str
    port: str = ""

    @classmethod
    def of(cls, text: str) -> Self:
        """Read a setting, such as `*.wb.example.com`; without a scheme it is https.

        >>> WildcardHosts.of("*.wb.example.com").address_of("alice")
        'https://alice.wb.example.com'

        Raises:
            ValueError: It is none.
        """
        found = _PATTERN.fullmatch(text)
        if found is None:
            raise ValueError(f"{text[:80]!r} is no wildcard host like *.wb.example.com")
        scheme, domain, port = found.groups()
        return cls(scheme or "https", domain, port or "")

    def address_of(self, label: str) -> str:
        """Return the address of a host, without a slash at its end."""
        return f"{self.scheme}://{label}.{self.domain}{self.port}"

    def label_of(self, host: str) -> str | None:
        """Return the label of a host, with or without a port; None if it is none of these, "" if it has several.

        >>> hosts = WildcardHosts.of("*.wb.example.com")
        >>> hosts.label_of("Alice.wb.example.com:443"), hosts.label_of("a.b.wb.example.com"), hosts.label_of("b.com")
        ('alice', '', None)
        """
        name = host.lower().partition(":")[0].removesuffix(".")
        if not name.endswith(f".{self.domain}"):
            return None
        label = name.removesuffix(f".{self.domain}")
        return label if "." not in label else ""

    def has_one_of(self, urls: Iterable[str]) -> bool:
        """Return whether one of some URLs is at such a host."""
        return any(self.label_of(urlsplit(url.strip()).netloc) is not None for url in urls)
