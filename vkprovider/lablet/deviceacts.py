"""What may be asked of one device of a lab that runs, and the annotation of the Pod that holds the requests.

vkprovider.io/device-requests: {"r1": "restart 2026-11-26T17:00:00Z"}
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import msgspec

from vkprovider.platform.times import iso

REQUEST_CHARS_MAX: Final = 64


class DeviceAct(StrEnum):
    """What may be asked of a device."""

    START = "start"
    STOP = "stop"
    RESTART = "restart"
    WIPE = "wipe"

    def question(self, device: str) -> str:
        """Return what is asked before it is done; "" if nothing is lost by it."""
        return _QUESTIONS[self].format(device=device)

    def told(self, device: str) -> str:
        """Return what is said when it was asked for."""
        return _TOLD[self].format(device=device)


_QUESTIONS: Final = {
    DeviceAct.START: "",
    DeviceAct.STOP: "Stop {device}? What is not saved on it is lost.",
    DeviceAct.RESTART: "Stop {device} and start it again? What is not saved on it is lost.",
    DeviceAct.WIPE: (
        "Wipe {device}? All that is on its disks is lost: it begins with the configuration that CML has stored; "
        "`reset` begins with that of the lab."
    ),
}
_TOLD: Final = {
    DeviceAct.START: "{device} is being started.",
    DeviceAct.STOP: "{device} is being stopped, and stays off until it is started.",
    DeviceAct.RESTART: "{device} is being stopped, and is started then.",
    DeviceAct.WIPE: "{device} is being wiped.",
}


def written(act: DeviceAct, now_unix: int) -> str:
    """Return a request; another one of the same is another text.

    >>> written(DeviceAct.WIPE, 0)
    'wipe 1970-01-01T00:00:00Z'
    """
    return f"{act} {iso(now_unix)}"


def act_of(request: str) -> DeviceAct | None:
    """Return what a request asks for; None if it is none."""
    word = request.partition(" ")[0]
    return DeviceAct(word) if word in _QUESTIONS else None


def read(text: str) -> dict[str, str] | None:
    """Return the requests of an annotation, by the label of the device; None if it cannot be read."""
    try:
        found = msgspec.json.decode(text, type=dict[str, str])
    except msgspec.MsgspecError:
        return None
    sound = all(act_of(request) and len(request) <= REQUEST_CHARS_MAX for request in found.values())
    return found if sound else None


def noted(requests: Mapping[str, str]) -> str:
    """Return the annotation of some requests."""
    return msgspec.json.encode(dict(requests)).decode()
