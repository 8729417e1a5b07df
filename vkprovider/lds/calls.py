"""How often and how long the LDS is called, by deployment, call and what came of it; ids are not kept."""

from typing import Final

from vkprovider.api.histogram import LONG_S, Histogram

_BOUNDS_S: Final = (0.005, 0.02, 0.1, 0.5, *LONG_S[:5])


class Calls:
    """Seconds of requests by deployment, call and code: a status, or a word of `answers.code_of`."""

    def __init__(self) -> None:
        self.took_s: dict[tuple[str, str, str], Histogram] = {}

    def count(self, deployment: str, call: str, code: str, took_s: float) -> None:
        """Count a request."""
        key = deployment, call, code
        histogram = self.took_s[key] = self.took_s.get(key) or Histogram(_BOUNDS_S)
        histogram.observe(took_s)


CALLS: Final = Calls()
"""Of this process: clients come and go with the configuration, a count only ever grows."""
