"""Faults of requests, from a seeded plan or ordered at run time. Choosing one is pure."""

import random
import re
from typing import Annotated, Literal

import msgspec

from vkpsim.http.patterns import check_pattern

Kind = Literal["delay", "status", "drop", "lost_answer", "unauthorized", "lost_token", "silence"]
"""What happens to a request.

* `delay`: it is carried out and answered `delay_s` later, also if the client has given up by then.
* `status`: it is not carried out and answered with `status`.
* `drop`: it is not carried out and its connection breaks.
* `lost_answer`: it is carried out and its connection breaks instead of an answer.
* `unauthorized`: it is answered with 401, once; the token stays good.
* `lost_token`: all tokens end first, as after a restart with a new key.
* `silence`: it is not carried out and never answered; the connection breaks when the fault ends.
"""


class Fault(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A fault and the requests it affects.

    Example:
        `{"route": "^PUT .*/start$", "kind": "status", "status": 503, "count": 3}`
    """

    kind: Kind
    route: str = ""
    """A regular expression, searched in `METHOD /path`."""
    count: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """How many requests it affects; None means no limit."""
    seconds: Annotated[float, msgspec.Meta(gt=0)] | None = None
    """How long it lasts; None means until it is deleted."""
    rate: Annotated[float, msgspec.Meta(gt=0, le=1)] = 1.0
    """Share of the matching requests that it affects, drawn by seed."""
    skip: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Matching requests that pass before it takes effect."""
    status: Annotated[int, msgspec.Meta(ge=400, le=599)] = 500
    delay_s: Annotated[float, msgspec.Meta(ge=0)] = 1.0

    def __post_init__(self) -> None:
        check_pattern("route", self.route)


class _Armed:
    """A fault that counts down."""

    def __init__(self, fault: Fault, now: float) -> None:
        self.fault = fault
        self.pattern = re.compile(fault.route)
        self.left = fault.count
        self.skip = fault.skip
        self.ends = None if fault.seconds is None else now + fault.seconds

    def over(self, now: float) -> bool:
        return self.left == 0 or (self.ends is not None and now >= self.ends)


class Faults:
    """The faults in force; the first match applies."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)
        self._armed: list[_Armed] = []

    def add(self, fault: Fault, now: float) -> None:
        """Put a fault in force."""
        self._armed.append(_Armed(fault, now))

    def clear(self) -> None:
        """End all faults."""
        self._armed.clear()

    def list(self, now: float) -> list[Fault]:
        """List the faults in force, each with what is left of its count."""
        self._armed = [armed for armed in self._armed if not armed.over(now)]
        return [msgspec.structs.replace(armed.fault, count=armed.left) for armed in self._armed]

    def meet(self, method: str, path: str, now: float) -> tuple[Fault, float | None] | None:
        """Choose what happens to a request: the fault and when it ends, or None."""
        if not self._armed:
            return None
        self._armed = [armed for armed in self._armed if not armed.over(now)]
        for armed in self._armed:
            if not armed.pattern.search(f"{method} {path}"):
                continue
            if armed.skip:
                armed.skip -= 1
                continue
            if armed.fault.rate < 1 and self._random.random() >= armed.fault.rate:
                continue
            if armed.left is not None:
                armed.left -= 1
            return armed.fault, armed.ends
        return None
