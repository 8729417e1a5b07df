"""The seam between the controllers and a store of content packages."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol


@dataclass(frozen=True, slots=True)
class PackageName:
    """The place of a package.

    Attributes:
        bucket: Empty for the bucket that the store was opened with.
    """

    bucket: str
    key: str


class StoredPackage(NamedTuple):
    """A package as it was uploaded.

    Attributes:
        version: The object's metadata `version`; empty if the uploader set none.
    """

    data: bytes
    version: str


class ContentStore(Protocol):
    """A store of content packages."""

    def locate(self, name: PackageName) -> str:
        """Return the full name of a package, for messages: `s3://labs/netlab.zip at http://minio:9000`."""

    async def get(self, name: PackageName, *, bytes_max: int) -> StoredPackage:
        """Get a package; never holds more than `bytes_max` of it.

        Raises:
            InputError: `PackageTooLarge`, or `SettingInvalid` (the kind of store is unknown).
            OutsideError: `NotFound`, `Forbidden`, `Unauthorized`, `Unavailable` or `DeadlineExceeded`.
        """
