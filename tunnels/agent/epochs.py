"""The newest epoch that an agent has seen, kept in a file."""

import os
import tempfile
from pathlib import Path
from typing import Final

_DIGITS_MAX: Final = 16


class EpochFile:
    """A file with one number.

    Args:
        path: The file; its folder must exist.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stored = 0

    def read(self) -> int:
        """Return the epoch; 0 if there is no file yet.

        Raises:
            ValueError: The file holds something else. Remove it only if no former owner can be alive.
            OSError: It cannot be read.
        """
        try:
            text = self._path.read_text(encoding="ascii").strip()
        except FileNotFoundError:
            return 0
        except UnicodeDecodeError:
            text = ""
        if not text.isdecimal() or len(text) > _DIGITS_MAX:
            raise ValueError(f"{self._path} does not hold an epoch")
        self._stored = int(text)
        return self._stored

    def keep(self, epoch: int) -> None:
        """Replace the number if it is another one, so that a crash leaves the old or the new one.

        Raises:
            OSError: It cannot be written.
        """
        if epoch == self._stored:
            return
        handle, name = tempfile.mkstemp(dir=self._path.parent, prefix=f".{self._path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="ascii") as file:
                file.write(f"{epoch}\n")
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(self._path)
            self._stored = epoch
        except OSError:
            Path(name).unlink(missing_ok=True)
            raise
