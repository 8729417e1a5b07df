"""What the controllers ask of a store of content packages."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol


@dataclass(frozen=True, slots=True)
class PackageName:
    """Where a package is.

    Attributes:
        bucket: Empty for the one that the store was opened with.
    """

    bucket: str
    key: str


class StoredPackage(NamedTuple):
    """A package as it was uploaded.

    Attributes:
        version: What the uploader said in the object's metadata `version`; empty if nothing.
    """

    data: bytes
    version: str


class ContentStore(Protocol):
    """A store of content packages."""

    def locate(self, name: PackageName) -> str:
        """Give the full name of a package, for people: `s3://labs/netlab.zip at http://minio:9000`."""

    async def get(self, name: PackageName, *, bytes_max: int) -> StoredPackage:
        """Get a package; never holds more than `bytes_max` of it.

        Raises:
            InputError: `PackageTooLarge`, or `SettingInvalid` (there is no such kind of store).
            OutsideError: `NotFound`, `Forbidden`, `Unauthorized`, `Unavailable` or `DeadlineExceeded`.
        """
