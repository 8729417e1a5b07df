"""The seams between the controllers and content packages: the store that has them, the parser that reads them."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from vkprovider.labs.pure.definition.package import Package
from vkprovider.labs.pure.topology.topology import Topology
from vkprovider.labs.settings.services import PackageSettings


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


class Parser(Protocol):
    """Parses untrusted content; it costs a bounded amount of CPU time and memory, whatever the content is."""

    async def package(self, data: bytes, limits: PackageSettings, version: str) -> Package:
        """Unpack a package; see `labs.pure.definition.package.read`.

        Raises:
            InputError: `PackageTooLarge` or `PackageInvalid`.
            OutsideError: It could not be parsed now.
        """

    async def topology(self, package: Package) -> Topology:
        """Parse the topology of a package; see `labs.pure.definition.package.validate`.

        Raises:
            InputError: `TopologyInvalid` or `PackageInvalid`.
            OutsideError: It could not be parsed now.
        """
