"""What the files hold that settings name: passwords, tokens, certificates; read again when one is replaced."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Generic, TypeVar

import structlog

from vkprovider.platform.errors import InputError
from vkprovider.platform.reasons import StartReason

T = TypeVar("T")

_log: Final = structlog.get_logger(__name__)


class Reread(Generic[T]):
    """What files hold; read again when one of them was replaced.

    Args:
        files: Their paths; those that are unset are left out.
        read: Reads and parses them; raises InputError, OSError or ValueError if they cannot be used.
        before: Returns what counts until one of the files exists; without it they must exist.

    Raises:
        InputError: `SettingInvalid`, or that of `read`: they cannot be used.
    """

    def __init__(
        self, files: Sequence[str | None], read: Callable[[], T], *, before: Callable[[], T] | None = None
    ) -> None:
        self._files: Final = [name for name in files if name]
        self._read: Final = read
        self._stamp = self._look()
        self._fault = ""
        try:
            self._held = before() if before is not None and not any(self._stamp) else read()
        except (OSError, ValueError) as error:
            raise InputError(StartReason.SETTING_INVALID, f"{', '.join(self._files)}: {error}") from None

    def current(self) -> T:
        """Return the content of the files; the last usable one if they cannot be used."""
        stamp = self._look()
        if stamp != self._stamp:
            try:
                self._held = self._read()
            except (InputError, OSError, ValueError) as error:  # perhaps a passing one: the next call tries again
                if (fault := str(error)) != self._fault:
                    self._fault = fault
                    _log.warning("files cannot be read again", files=", ".join(self._files), error=fault)
            else:
                self._stamp, self._fault = stamp, ""
                _log.info("files were read again", files=", ".join(self._files))
        return self._held

    def _look(self) -> list[tuple[int, ...] | None]:
        return [_stamp_of(name) for name in self._files]


def _stamp_of(name: str) -> tuple[int, ...] | None:
    """Return a stamp that changes when the file is rewritten or replaced; None while it does not exist."""
    try:
        status = Path(name).stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino, status.st_size
