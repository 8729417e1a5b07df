"""A machine whose clock may be wrong, and an API server whose answers it hears."""

import math
from email.utils import formatdate
from typing import Final

from vkprovider.platform.kube.clock import ApiClock

UNIX: Final = 1_795_671_269.0
DAY_S: Final = 86_400.0


class Machine:
    """A machine, its clocks, and a server whose answers it hears."""

    def __init__(self, off_s: float = 0.0) -> None:
        self.up_s = 1000.0
        self.off_s = off_s
        self.clock = ApiClock(now=lambda: self.up_s, own=lambda: self.true + self.off_s)

    @property
    def true(self) -> float:
        """The server's time."""
        return UNIX + self.up_s

    def hear(self, server_off_s: float = 0.0, on_its_way_s: float = 0.0) -> None:
        """Hear an answer that the server has sent a moment ago; its date has whole seconds."""
        self.clock.note(formatdate(math.floor(self.true - on_its_way_s + server_off_s), usegmt=True))
