"""The state file: written soon after changes, whole or not at all."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
import structlog

T = TypeVar("T")

DEBOUNCE_S: Final = 0.05
"""How long changes are gathered before a write; `kill -9` loses at most this and the time of a write."""
RETRY_S: Final = 1.0
_LOG: Final = structlog.get_logger(__name__)


def load(path: Path, shape: type[T]) -> T | None:
    """Read and decode a state file; None if it does not exist.

    Raises:
        ValueError: It is not a state file of this version.
    """
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        return msgspec.json.decode(raw, type=shape)
    except msgspec.MsgspecError as error:
        raise ValueError(f"{path} is not a state file of this version of the simulator: {error}") from error


class Store:
    """Writes the state after changes, at most once per `DEBOUNCE_S`."""

    def __init__(self, path: Path, snapshot: Callable[[], Any]) -> None:
        self._path = path
        self._snapshot = snapshot
        self._dirty = asyncio.Event()
        self._closing = False
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Write once, so that a bad path fails at once, and continue in the background.

        Raises:
            OSError: The file cannot be written.
        """
        await self._write()
        self._task = asyncio.create_task(self._run(), name="sim-store")

    def touch(self) -> None:
        """Mark the state as changed."""
        self._dirty.set()

    async def close(self) -> None:
        """Write a last time and stop."""
        self._closing = True
        self._dirty.set()
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        while self._dirty.is_set() or not self._closing:
            await self._dirty.wait()
            if not self._closing:
                await asyncio.sleep(DEBOUNCE_S)
            self._dirty.clear()
            try:
                await self._write()
            except OSError as error:
                _LOG.error("state not written", path=str(self._path), error=str(error))
                if not self._closing:
                    self._dirty.set()
                    await asyncio.sleep(RETRY_S)

    async def _write(self) -> None:
        raw = msgspec.json.encode(self._snapshot())
        await asyncio.to_thread(self._replace, raw)

    def _replace(self, raw: bytes) -> None:
        part = self._path.with_name(self._path.name + ".part")
        part.write_bytes(raw)
        part.replace(self._path)
