"""A capture of a link as it is asked for: `exec POD -c lab -- capture r1:eth0 --filter=icmp --packets=50 --seconds=60`.

CML captures up to a million packets in a day. The provider reads the whole file of a capture again and again, and
so has smaller limits.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from vkprovider.lablet import names
from vkprovider.lablet.reasons import ConsoleReason
from vkprovider.platform.errors import InputError

PACKETS: Final = 1000
PACKETS_MAX: Final = 10_000
SECONDS: Final = 60
SECONDS_MAX: Final = 3600
FILTER_CHARS_MAX: Final = 128
"""CML's."""
LIST: Final = "list"
STOP: Final = "stop"
_USAGE: Final = (
    f"write `{names.CAPTURE} LINK [--filter=EXPRESSION] [--packets=N] [--seconds=N]`, `{names.CAPTURE} {STOP}` or"
    f" `{names.CAPTURE} {LIST}`"
)
_LIMITS: Final = {"--packets": PACKETS_MAX, "--seconds": SECONDS_MAX}


class CaptureRequest(msgspec.Struct, frozen=True):
    """What is captured.

    Attributes:
        link: As people name it: `r1:GigabitEthernet0/0`, `r1:gi0/0`, `r1-r2`.
        expression: A filter as tcpdump knows it; "" for all packets.
        packets: The most of them.
        seconds: The longest time.
    """

    link: str
    expression: str = ""
    packets: int = PACKETS
    seconds: int = SECONDS

    def words(self) -> list[str]:
        """Return the command of `exec`, in the container of a lablet as a whole."""
        more = [f"--filter={self.expression}"] if self.expression else []
        return [names.CAPTURE, self.link, f"--packets={self.packets}", f"--seconds={self.seconds}", *more]


def read(words: Sequence[str]) -> CaptureRequest:
    """Return what the words of a command ask for; the second one is the link.

    Raises:
        InputError: `CommandInvalid`.
    """
    counts, expression = {"--packets": PACKETS, "--seconds": SECONDS}, ""
    for word in words[2:]:
        option, _, value = word.partition("=")
        if option == "--filter" and _is_filter(value.strip()):
            expression = value.strip()
        elif option in counts and _is_count(value, _LIMITS[option]):
            counts[option] = int(value)
        else:
            raise _invalid(word)
    if not words[1] or words[1].startswith("-"):
        raise _invalid(words[1])
    return CaptureRequest(words[1], expression, counts["--packets"], counts["--seconds"])


def _is_filter(text: str) -> bool:
    """Return whether CML is given a filter; to its tcpdump one with a hyphen in front would be an option."""
    return len(text) <= FILTER_CHARS_MAX and text.isprintable() and not text.startswith("-")


def _is_count(text: str, most: int) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= len(str(most)) and 1 <= int(text) <= most


def _invalid(word: str) -> InputError:
    text = (
        f"{word[:FILTER_CHARS_MAX]!r} is not understood: {_USAGE}; at most {PACKETS_MAX} packets, {SECONDS_MAX} seconds"
        f" and a filter of {FILTER_CHARS_MAX} characters that does not begin with a hyphen"
    )
    return InputError(ConsoleReason.COMMAND_INVALID, text)
