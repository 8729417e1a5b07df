"""The requests that a transport lets pass: a closed list of methods and paths."""

import re
from collections.abc import Iterable
from typing import Final

from tunnels.errors import RequestRefused

_SEGMENT: Final = r"[0-9A-Za-z_-]{1,64}"
"""What a `{placeholder}` stands for: one segment without dots, escapes or slashes, so that no path can climb out."""


class AllowList:
    """A closed list of (method, path pattern).

    Args:
        entries: For instance `[("GET", "/api/v0/labs"), ("PUT", "/api/v0/labs/{lab}/start")]`.
    """

    def __init__(self, entries: Iterable[tuple[str, str]]) -> None:
        self.entries: Final = tuple(entries)
        patterns: dict[str, list[str]] = {}
        for method, pattern in self.entries:
            literal = re.split(r"\{[a-z_]+\}", pattern)
            patterns.setdefault(method, []).append(_SEGMENT.join(re.escape(part) for part in literal))
        self._patterns = {method: re.compile("|".join(paths)) for method, paths in patterns.items()}

    def allows(self, method: str, path: str) -> bool:
        """Return whether the list names the request."""
        pattern = self._patterns.get(method)
        return pattern is not None and pattern.fullmatch(path) is not None

    def check(self, method: str, path: str) -> None:
        """Refuse a request that the list does not name.

        Raises:
            RequestRefused: It does not.
        """
        if not self.allows(method, path):
            raise RequestRefused(f"{method} {path} is not on the allow-list")
