"""What files hold that are replaced while the program runs: passwords, tokens, certificates."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Generic, TypeVar

import structlog

from vkprovider.api.errors import InputError

T = TypeVar("T")

_log: Final = structlog.get_logger(__name__)


class Reread(Generic[T]):
    """What files hold; read again when one of them was replaced.

    Args:
        files: Their paths; those that are unset are left out.
        read: Reads and parses them; raises OSError or ValueError if they cannot be used.

    Raises:
        InputError: `SettingInvalid`: they cannot be used.
    """

    def __init__(self, files: Sequence[str | None], read: Callable[[], T]) -> None:
        self._files: Final = [name for name in files if name]
        self._read: Final = read
        try:
            self._stamp = self._look()
            self._held = read()
        except (OSError, ValueError) as error:
            raise InputError("SettingInvalid", f"{', '.join(self._files)}: {error}") from None

    def current(self) -> T:
        """Return what the files hold, or held last before they became unusable."""
        stamp = self._look()
        if stamp != self._stamp:
            self._stamp = stamp
            try:
                self._held = self._read()
                _log.info("files were read again", files=", ".join(self._files))
            except (OSError, ValueError) as error:
                _log.warning("files cannot be read again", files=", ".join(self._files), error=str(error))
        return self._held

    def _look(self) -> list[tuple[int, int, int] | None]:
        return [_stamp_of(name) for name in self._files]


def _stamp_of(name: str) -> tuple[int, int, int] | None:
    """Return what is different about a file that was written anew or replaced; None while it is not there."""
    try:
        status = Path(name).stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino, status.st_size
