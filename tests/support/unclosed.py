"""Whose an unclosed session is: the warning comes when it is collected, in another test than the one that made it."""

import itertools
import os
import sys
import traceback
from typing import Any, Final

import aiohttp

_FRAMES: Final = 8
_ORIGIN: Final = "_made_by_test"


def name_sessions() -> None:
    """Have the text of a session of aiohttp name the test that made it, and where."""
    begin = aiohttp.ClientSession.__init__

    def made(self: aiohttp.ClientSession, *args: Any, **kwargs: Any) -> None:
        frames = itertools.islice(traceback.walk_stack(sys._getframe(1)), _FRAMES)
        lines = [f"{frame.f_code.co_filename}:{line}" for frame, line in frames]
        self.__dict__[_ORIGIN] = f"{os.environ.get('PYTEST_CURRENT_TEST', 'no test')} at {', '.join(lines)}"
        begin(self, *args, **kwargs)

    def text(self: object) -> str:
        return f"<ClientSession of {self.__dict__.get(_ORIGIN, 'unknown')}>"

    aiohttp.ClientSession.__init__ = made  # type: ignore[method-assign]
    aiohttp.ClientSession.__repr__ = text  # type: ignore[method-assign]
