"""The document around stored rows of ports, and its ConfigMap.

    {"schemaVersion": 1, OWNER: {…}, …, "portClaims": […], "allocations": […]}

Each kind of owner adds fields of its own: a block that names the owner, and what else it stores. Fields that this
program does not know are kept unchanged. A large document is packed.
"""

from collections.abc import Iterable, Mapping
from typing import Final, Generic, NamedTuple, TypeVar

import msgspec

from vkprovider.platform.objects import ConfigMap
from vkprovider.platform.packing import pack, unpack
from vkprovider.platform.ports import rows as portrows
from vkprovider.platform.ports.rows import PortRow, StoredRow, Unchanged
from vkprovider.platform.reasons import decode

SCHEMA_VERSION: Final = 1
DATA_KEY: Final = "allocations.json"
GZIP_KEY: Final = "allocations.json.gz"
PLAIN_BYTES_MAX: Final = 256 * 1024
OBJECT_BYTES_MAX: Final = 1020 * 1024
"""A little less than the API server's limit of 1 MiB for a ConfigMap's data, which counts decoded bytes."""
DECODED_BYTES_MAX: Final = 64 * 2**20
_PACK_LEVELS: Final = (3, 9)
"""How hard to pack: quickly, and when that does not fit, as small as possible."""


class StoreInvalid(ValueError):  # noqa: N818 (what is the case, as in the reasons)
    """A document cannot be used; the text completes `ConfigMap NAME …`."""


class StoreDamaged(ValueError):  # noqa: N818 (what is the case, as in the reasons)
    """A document cannot be read at all; the text is that of the decoder."""


class StoreFull(ValueError):  # noqa: N818 (what is the case, as in the reasons)
    """A document is larger than one ConfigMap can hold."""


class Document(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """What every document has; each kind of owner derives its own."""

    schema_version: int
    port_claims: list[msgspec.Raw] = []
    allocations: list[msgspec.Raw] = []


D = TypeVar("D", bound=Document)


class OpenedStore(NamedTuple, Generic[D]):
    """What a ConfigMap holds.

    Attributes:
        document: The fields of its kind.
        fields: The JSON of fields that this program does not know.
    """

    document: D
    fields: dict[str, msgspec.Raw]

    def rows(self) -> list[StoredRow]:
        """Return the rows of ports.

        Raises:
            StoreInvalid: One of them does not make sense, or one port has two owners.
            StoreDamaged: One of them cannot be read.
        """
        try:
            return portrows.read(self.document.port_claims, self.document.allocations)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise StoreDamaged(str(error)) from None
        except ValueError as error:
            raise StoreInvalid(f": {error}; remove the wrong row") from None


class Codec(Generic[D]):
    """Reads and writes the documents of one kind of owner."""

    def __init__(self, kind: type[D]) -> None:
        """Create it for the documents of a kind."""
        self._decoder: Final = msgspec.json.Decoder(kind, dec_hook=decode)
        self._known: Final = frozenset(field.encode_name for field in msgspec.structs.fields(kind))

    def read(self, config_map: ConfigMap) -> OpenedStore[D]:
        """Read a document. Whose it is remains to be checked, before its rows are used.

        Raises:
            StoreInvalid: It is missing, or of another version.
            StoreDamaged: It cannot be read.
        """
        try:
            raw = _unpack(config_map)
            document = self._decoder.decode(raw)
            fields = _fields.decode(raw)
        except KeyError:
            raise StoreInvalid(f" has no key {DATA_KEY}") from None
        except (ValueError, RecursionError, msgspec.MsgspecError) as error:
            raise StoreDamaged(str(error)) from None
        if document.schema_version != SCHEMA_VERSION:
            raise StoreInvalid(f" has schema version {document.schema_version}, this program reads {SCHEMA_VERSION}")
        return OpenedStore(document, {key: value.copy() for key, value in fields.items() if key not in self._known})


def write(
    owned: Mapping[str, object],
    rows: Iterable[PortRow],
    unchanged: Iterable[Unchanged],
    fields: Mapping[str, msgspec.Raw],
    *,
    bytes_max: int = OBJECT_BYTES_MAX,
    plain_bytes_max: int = PLAIN_BYTES_MAX,
) -> tuple[dict[str, str], dict[str, str]]:
    """Build a ConfigMap's `data` and `binaryData`, of at most `bytes_max`.

    Args:
        owned: The fields of the owner's kind, in this order.
        rows: The rows of ports.
        unchanged: Rows of others, as they were found.
        fields: Fields that this program does not know, as they were found.
        bytes_max: The size that must suffice.
        plain_bytes_max: The size up to which the document is not packed.

    Raises:
        StoreFull: It does not.
    """
    claimed, allocated = portrows.write(rows, unchanged)
    raw = _encoder.encode(
        {"schemaVersion": SCHEMA_VERSION, **owned, "portClaims": claimed, "allocations": allocated, **fields}
    )
    if len(raw) <= plain_bytes_max:
        return {DATA_KEY: raw.decode()}, {}
    for level in _PACK_LEVELS:
        packed = pack(raw, level)
        if len(packed) <= bytes_max // 3 * 4:  # in base64
            return {}, {GZIP_KEY: packed}
    raise StoreFull(f"{len(raw)} bytes of JSON do not fit into {bytes_max} when packed")


_fields: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_encoder: Final = msgspec.json.Encoder()


def _unpack(config_map: ConfigMap) -> bytes:
    if GZIP_KEY in config_map.binary_data:
        return unpack(config_map.binary_data[GZIP_KEY], DECODED_BYTES_MAX)
    return config_map.data[DATA_KEY].encode()
