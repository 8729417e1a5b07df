"""The time by which a command judges and writes stamps: the API server's, for the clock of a laptop may be wrong."""

import contextlib
from datetime import UTC, datetime
from typing import Final

from vkprovider.platform.errors import Forbidden, NotFound
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.clock import ApiClock

_followed: Final[list[ApiClock]] = []


def follow(clock: ApiClock) -> None:
    """Take the time from the answers of an API server from now on; a command asks one."""
    _followed[:] = [clock]


def now() -> datetime:
    """Return the time as the last answer told it; before there is one, as this machine has it."""
    return datetime.fromtimestamp(_followed[0].wall(), UTC) if _followed else datetime.now(UTC)


async def asked(kube: KubeClient) -> datetime:
    """Return the API server's time, and ask it first if it has told none yet.

    Raises:
        OutsideError: It does not answer.
    """
    if not kube.clock.is_known:
        with contextlib.suppress(Forbidden, NotFound):
            await kube.get("/version")
    return datetime.fromtimestamp(kube.clock.wall(), UTC)
