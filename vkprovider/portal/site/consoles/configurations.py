"""The present configurations of the devices of a lab, as a visitor may read them, in one archive."""

import io
import time
import zipfile
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from vkprovider.api.errors import OutsideError
from vkprovider.concurrency import at_most
from vkprovider.kube.client import KubeClient
from vkprovider.portal.site.consoles import words
from vkprovider.portal.site.consoles.frames import Why
from vkprovider.portal.site.consoles.upstream import ConsoleTarget, printed

_AT_ONCE: Final = 4
"""As many as a worker extracts at once."""
FAILURES: Final = "not-read.txt"
_UNIX: Final = 3
_MODE: Final = 0o644 << 16


class Configuration(NamedTuple):
    """The configuration of a device, or why there is none.

    Attributes:
        device: The name of its container, which is one of a file, too.
        text: The configuration.
        fault: A sentence; "" if there is a configuration.
    """

    device: str
    text: bytes = b""
    fault: str = ""


async def collected(kube: KubeClient, targets: Sequence[ConsoleTarget]) -> list[Configuration]:
    """Read the configurations of some devices, a few at a time; one that fails stops no other.

    Args:
        kube: A client with the credentials of the visitor.
        targets: The devices.
    """
    found: dict[str, Configuration] = {}

    async def read(target: ConsoleTarget) -> None:
        found[target.device] = await _read(kube, target)

    await at_most(_AT_ONCE, read, targets)
    return [found[target.device] for target in targets]


async def _read(kube: KubeClient, target: ConsoleTarget) -> Configuration:
    device = target.device
    try:
        text, end = await printed(kube, target, ["config", device])
    except OutsideError as error:
        return Configuration(device, fault=words.refusal(error, device).text)
    return Configuration(device, text) if end.why is Why.ENDED else Configuration(device, fault=end.text)


def archive(found: Iterable[Configuration], *, at: float) -> bytes:
    """Return a zip archive with a file for each configuration, and one that says which could not be read, if any.

    Args:
        found: The configurations.
        at: The time of the files, in Unix seconds.
    """
    files = {f"{each.device}.cfg": each.text for each in found if not each.fault}
    faults = "".join(f"{each.device}: {each.fault}\n" for each in found if each.fault)
    if faults or not files:
        files[FAILURES] = (faults or "This lab shows no devices.\n").encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as whole:
        for name, text in files.items():
            entry = zipfile.ZipInfo(name, time.gmtime(at)[:6])
            entry.create_system, entry.external_attr = _UNIX, _MODE
            whole.writestr(entry, text, zipfile.ZIP_DEFLATED)
    return packed.getvalue()
