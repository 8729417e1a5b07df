"""The access log: each request, its times, and what its answer showed. Benchmarks read it."""

import itertools
import time
from collections import deque
from pathlib import Path
from typing import Final, TextIO

import msgspec

ENTRIES_KEPT: Final = 100_000
"""Entries in memory; the file keeps all."""


class Entry(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One request. Times ending in `_s` are of the machine's monotonic clock, `_unix_s` of its wall clock."""

    number: int
    arrived_s: float
    arrived_unix_s: float
    method: str
    path: str
    query: str = ""
    user: str = ""
    agent: str = ""
    """Its User-Agent."""
    answered_s: float = 0.0
    answered_unix_s: float = 0.0
    status: int = 0
    """0 if there was no answer."""
    lab: str = ""
    """Id of the imported lab."""
    title: str = ""
    """Title of the imported lab."""
    converged: list[str] = []
    """Ids of labs that no answer before this one had shown as converged since their last start."""
    fault: str = ""
    session: str = ""
    """Id of the session, in the log of a Lab Delivery System."""


class AccessLog:
    """Entries in memory, and as JSON lines in a file if one is given."""

    def __init__(self, path: Path | None = None) -> None:
        self.entries: deque[Entry] = deque(maxlen=ENTRIES_KEPT)
        self._numbers = itertools.count(1)
        self._file: TextIO | None = path.open("a", encoding="utf-8", buffering=1) if path else None

    def begin(self, method: str, path: str, query: str, agent: str) -> Entry:
        """Start the entry of a request; `write` completes it when it is answered."""
        return Entry(
            number=next(self._numbers),
            arrived_s=time.monotonic(),
            arrived_unix_s=time.time(),
            method=method,
            path=path,
            query=query,
            agent=agent,
        )

    def write(self, entry: Entry) -> None:
        """Write the entry of a finished request."""
        self.entries.append(entry)
        if self._file is not None:
            self._file.write(msgspec.json.encode(entry).decode() + "\n")

    def since(self, number: int) -> list[Entry]:
        """List the entries written whose number is larger."""
        return [entry for entry in self.entries if entry.number > number]

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None
