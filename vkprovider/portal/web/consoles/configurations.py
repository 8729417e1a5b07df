"""The present configurations of the devices of a lab, as a visitor may read them, in one archive."""

import io
import time
import zipfile
from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import Final, NamedTuple

from vkprovider.platform.concurrency import at_most
from vkprovider.platform.errors import OutsideError
from vkprovider.platform.http.answers import Refused
from vkprovider.platform.http.open import Places
from vkprovider.platform.kube.client import KubeClient
from vkprovider.portal.web.consoles import words
from vkprovider.portal.web.consoles.frames import Why
from vkprovider.portal.web.consoles.upstream import ConsoleTarget, printed

_AT_ONCE: Final = 4
"""As many as a worker extracts at once."""
DOWNLOADS_MAX: Final = 4
"""The most downloads of a replica: each has what it has read in memory."""
_ARCHIVE_BYTES_MAX: Final = 8 * 1024 * 1024
FAILURES: Final = "not-read.txt"
_UNIX: Final = 3
_MODE: Final = 0o644 << 16


class DeviceConfiguration(NamedTuple):
    """The configuration of a device, or why there is none.

    Attributes:
        device: The name of its container, which is one of a file, too.
        text: The configuration.
        fault: A sentence; "" if there is a configuration.
    """

    device: str
    text: bytes = b""
    fault: str = ""


class TooManyDownloads(Refused):
    """So many downloads of configurations go on already."""

    status_code = HTTPStatus.TOO_MANY_REQUESTS
    remedy = "Wait for the end of the other download, and try again."
    retry_s = 5


def downloads() -> Places:
    """Return the places of a replica's downloads of configurations: a few, and one for each visitor."""
    return Places(DOWNLOADS_MAX, 1, _too_many)


def _too_many(own: bool) -> TooManyDownloads:  # noqa: FBT001 (as `Places` calls it)
    if own:
        return TooManyDownloads("another download of yours goes on: wait for its end, and try again")
    return TooManyDownloads("too many others download configurations now: try again in some seconds")


async def collected(kube: KubeClient, targets: Sequence[ConsoleTarget]) -> list[DeviceConfiguration]:
    """Read the configurations of some devices, a few at a time; one that fails stops no other.

    One that does not fit into the archive any more is left out.

    Args:
        kube: A client with the credentials of the visitor.
        targets: The devices.
    """
    found: dict[str, DeviceConfiguration] = {}

    async def read(target: ConsoleTarget) -> None:
        configuration = await _read(kube, target)
        room = _ARCHIVE_BYTES_MAX - sum(len(each.text) for each in found.values())
        found[target.device] = configuration if len(configuration.text) <= room else _left_out(target.device)

    await at_most(_AT_ONCE, read, targets)
    return [found[target.device] for target in targets]


async def _read(kube: KubeClient, target: ConsoleTarget) -> DeviceConfiguration:
    device = target.device
    try:
        text, end = await printed(kube, target, ["config", device])
    except OutsideError as error:
        return DeviceConfiguration(device, fault=words.refusal(error, device).text)
    return DeviceConfiguration(device, text) if end.why is Why.ENDED else DeviceConfiguration(device, fault=end.text)


def _left_out(device: str) -> DeviceConfiguration:
    size = f"{_ARCHIVE_BYTES_MAX // 2**20} MiB"
    fault = f"It does not fit: an archive has {size} of configurations at most; `config {device}` prints it."
    return DeviceConfiguration(device, fault=fault)


def archive(found: Iterable[DeviceConfiguration], *, at: float) -> bytes:
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
