"""A content package: the zip that authors upload, with `devices.yaml`.

    - label: workstation            # as in the topology
      node_definition: ubuntu       # optional, as in the topology
      image_definition: desktop-1   # optional; instead of the topology's
      port_tags: ["vnc:5066"]       # optional, tags that the device has in the topology
      is_user_visible: true         # optional; instead of what follows from its tags

Credentials must not be in `devices.yaml`: packages end up in ConfigMaps.

A package has `cml.yaml` and, where the lab has them, `grade.xml`, `pod.xml`, `devices.yaml` and a file `version`, all
at the top or all in one folder; other files are ignored. Nothing in a package is trusted: its declared sizes are
checked before and after unpacking, no name in it is ever used as a path, and no entity of its XML is expanded.
"""

import io
import lzma
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final
from xml.sax import SAXException, SAXParseException
from xml.sax.handler import ContentHandler

from defusedxml import DefusedXmlException, sax

from vkprovider.lablet.models.fields import LATEST, VERSION_CHARS_MAX, VERSION_PATTERN
from vkprovider.lablet.reasons import DefinitionReason
from vkprovider.labs.pure.topology import topology as topologies
from vkprovider.labs.pure.topology import yamltext
from vkprovider.labs.pure.topology.topology import Device, Topology
from vkprovider.labs.settings.services import PackageSettings
from vkprovider.platform.errors import InputError, shorten

_FIELDS: Final = {
    "label": str,
    "node_definition": str,
    "image_definition": str,
    "port_tags": list,
    "is_user_visible": bool,
}
_WORDS: Final = {str: "text", list: "list", bool: "boolean"}


@dataclass(frozen=True, slots=True)
class DeviceEntry:
    """One device of the file.

    Attributes:
        image_definition: Empty where the topology decides.
        is_user_visible: Whether a learner gets access to it; None where its tags decide.
    """

    label: str
    image_definition: str = ""
    is_user_visible: bool | None = None


def parse(text: str, devices: Iterable[Device]) -> dict[str, DeviceEntry]:
    """Parse the file; return the entries by label.

    Raises:
        InputError: `PackageInvalid`, with the place and what is wrong there.
    """
    document = _load(text)
    if isinstance(document, dict) and set(document) == {"devices"}:
        document = document["devices"]
    if not isinstance(document, list):
        raise _device_file_invalid("must be a list of devices")
    known = {device.label: device for device in devices}
    found: dict[str, DeviceEntry] = {}
    for i, item in enumerate(document):
        entry = _entry(item, f"[{i}]", known)
        if entry.label in found:
            raise _device_file_invalid(f"[{i}].label: {entry.label!r} is in it twice")
        found[entry.label] = entry
    return found


def _entry(item: Any, place: str, known: dict[str, Device]) -> DeviceEntry:
    if not isinstance(item, dict):
        raise _device_file_invalid(f"{place} must be a mapping with `label`")
    for name, value in item.items():
        if name == "access_credentials":
            raise _device_file_invalid(
                f"{place}.access_credentials: put them into the Secret that spec.deviceSecretName names"
            )
        kind = _FIELDS.get(name) if isinstance(name, str) else None
        if kind is None:
            raise _device_file_invalid(
                f"{place} has an unknown field {shorten(str(name), 40)!r}; known are {', '.join(_FIELDS)}"
            )
        if not isinstance(value, kind):
            raise _device_file_invalid(f"{place}.{name} must be a {_WORDS[kind]}")
    label = item.get("label")
    device = known.get(label) if isinstance(label, str) else None
    if device is None:
        raise _device_file_invalid(f"{place}.label: the topology has no device {shorten(str(label), 80)!r}")
    if item.get("node_definition", device.definition) != device.definition:
        raise _device_file_invalid(
            f"{place}.node_definition: {device.label!r} is a {device.definition} in the topology"
        )
    for tag in item.get("port_tags", ()):
        if tag not in device.tags:
            raise _device_file_invalid(
                f"{place}.port_tags: {device.label!r} has no tag {shorten(str(tag), 80)!r} in the topology"
            )
    return DeviceEntry(device.label, item.get("image_definition", ""), item.get("is_user_visible"))


def _load(text: str) -> Any:
    try:
        return yamltext.load(text)[0]
    except InputError as error:
        raise _device_file_invalid(f"cannot be read: {error.message}") from None


def _device_file_invalid(what: str) -> InputError:
    return InputError(DefinitionReason.PACKAGE_INVALID, f"devices.yaml {what}")


TOPOLOGY_NAMES: Final = ("cml.yaml", "cml.yml")
GRADE: Final = "grade.xml"
POD: Final = "pod.xml"
DEVICES: Final = "devices.yaml"
FILES: Final[Mapping[str, tuple[str, ...]]] = {
    GRADE: (GRADE,),
    POD: (POD,),
    DEVICES: (DEVICES, "devices.yml"),
}
"""Files stored beside the topology, with the names that they may have in a package."""
VERSION_NAMES: Final = ("version", "VERSION", "version.txt")
_VERSION_BYTES_MAX: Final = 1024
_XML_NESTING_MAX: Final = 100
_NAMES_SHOWN: Final = 10
_DIRECTORY_ENTRY: Final = b"PK\x01\x02"
_METHODS: Final = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_ENCRYPTED: Final = 0x1
_VERSION: Final = re.compile(VERSION_PATTERN)
_DRIVE: Final = re.compile(r"^[A-Za-z]:")
_XML_ENCODING: Final = re.compile(r"""^\s*<\?xml[^>]*\sencoding\s*=\s*["']([^"']*)["']""")
_UTF_8: Final = frozenset({"utf-8", "utf8", "us-ascii", "ascii"})
_DAMAGE: Final = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    OSError,
    EOFError,
    ValueError,
    LookupError,
    OverflowError,
    NotImplementedError,
    RuntimeError,
)
"""Errors that `zipfile` raises on malformed bytes."""


@dataclass(frozen=True, slots=True)
class Package:
    """One version, as read from a source.

    Attributes:
        text: The topology, `cml.yaml`.
        files: Name to text of the other stored files: `grade.xml`, `pod.xml`, `devices.yaml`.
    """

    version: str
    text: str
    files: Mapping[str, str] = field(default_factory=dict)


def read(data: bytes, limits: PackageSettings, *, version: str = "") -> Package:
    """Unpack a package; `validate` then checks the topology.

    Args:
        data: The zip.
        limits: Its maximum sizes.
        version: The content's version, if the package has none.

    Raises:
        InputError: `PackageTooLarge`, with the limit and its setting; `PackageInvalid`, with the file and what is wrong
            about it.
    """
    if len(data) > limits.package_bytes_max:
        raise too_large(f"it has {len(data)} bytes", limits.package_bytes_max, "VKPROVIDER_PACKAGE_BYTES_MAX")
    if data.count(_DIRECTORY_ENTRY) > limits.files_max:  # before a million entries become objects
        raise too_large("it holds more files", limits.files_max, "VKPROVIDER_PACKAGE_FILES_MAX")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return _read(archive, limits, version)
    except _DAMAGE as error:
        raise _invalid(f"it is not a zip that can be read: {shorten(str(error), 120)}") from None


def validate(package: Package) -> Topology:
    """Parse the topology with the changes that `devices.yaml` makes to it.

    Raises:
        InputError: `TopologyInvalid` or `PackageInvalid`.
    """
    topology = topologies.parse(package.text)
    if DEVICES not in package.files:
        return topology
    entries = parse(package.files[DEVICES], topology.devices)
    images = {label: entry.image_definition for label, entry in entries.items() if entry.image_definition}
    if images:
        topology = topologies.parse(package.text, images=images)
    devices = tuple(
        replace(device, visible=entry.is_user_visible)
        if (entry := entries.get(device.label)) is not None and entry.is_user_visible is not None
        else device
        for device in topology.devices
    )
    return replace(topology, devices=devices)


def too_large(what: str, limit: int, setting: str) -> InputError:
    """Return the error for an exceeded limit, with the setting that raises it."""
    return InputError(
        DefinitionReason.PACKAGE_TOO_LARGE, f"{what}, at most {limit} are allowed; make it smaller, or raise {setting}"
    )


def _read(archive: zipfile.ZipFile, limits: PackageSettings, version: str) -> Package:
    members = _members(archive, limits)
    topology = _pick(members, TOPOLOGY_NAMES)
    if topology is None:
        found = sorted(members)[:_NAMES_SHOWN]
        raise _invalid(f"cml.yaml is missing; the package holds {', '.join(map(_show, found)) or 'nothing'}")
    text = _text(topology, _unpack(archive, topology, limits.file_bytes_max))
    files: dict[str, str] = {}
    for name, known_as in FILES.items():
        if (member := _pick(members, known_as)) is not None:
            files[name] = _text(member, _unpack(archive, member, limits.file_bytes_max))
            if name.endswith(".xml"):
                _check_xml(name, files[name])
    if (member := _pick(members, VERSION_NAMES)) is not None:
        version = _text(member, _unpack(archive, member, _VERSION_BYTES_MAX)).strip()
    return Package(check_version(version), text, files)


def check_version(version: str) -> str:
    """Return the version if it can be the tag of an image.

    Raises:
        InputError: `PackageInvalid`.
    """
    if not version:
        raise _invalid("it names no version: add a file `version`, or set spec.version of the definition")
    if len(version) > VERSION_CHARS_MAX or not _VERSION.match(version):
        raise _invalid(f"version {_show(version)} cannot be the tag of an image; write it like 1.2.0")
    if version == LATEST:
        raise _invalid(f"version {LATEST} in an image means the current version; write it like 1.2.0")
    return version


def _members(archive: zipfile.ZipFile, limits: PackageSettings) -> dict[str, zipfile.ZipInfo]:
    """Check every entry, used or not; return the files by name, without a folder that has them all."""
    entries = archive.infolist()
    unpacked = 0
    members: dict[str, zipfile.ZipInfo] = {}
    for entry in entries:
        name = entry.orig_filename
        parts = name.removesuffix("/").split("/")
        if "\\" in name or name.startswith("/") or _DRIVE.match(name) or not name.isprintable():
            raise _invalid(f"the name {_show(name)} leads out of the package or is none")
        if any(part in {"", ".", ".."} for part in parts):
            raise _invalid(f"the name {_show(name)} leads out of the package or is none")
        if stat.S_ISLNK(entry.external_attr >> 16):
            raise _invalid(f"{_show(name)} is a link; put the file itself there")
        unpacked += entry.file_size
        if unpacked > limits.unpacked_bytes_max:
            raise too_large(
                "its files have more bytes", limits.unpacked_bytes_max, "VKPROVIDER_PACKAGE_UNPACKED_BYTES_MAX"
            )
        if name.endswith("/") or parts[0] == "__MACOSX":
            continue
        if name in members:
            raise _invalid(f"{_show(name)} is in it twice")
        members[name] = entry
    folders = {name.partition("/")[0] for name in members}
    if len(folders) == 1 and all("/" in name for name in members):
        return {name.partition("/")[2]: entry for name, entry in members.items()}
    return members


def _pick(members: Mapping[str, zipfile.ZipInfo], known_as: tuple[str, ...]) -> zipfile.ZipInfo | None:
    found = [name for name in known_as if name in members]
    if len(found) > 1:
        raise _invalid(f"it holds {' and '.join(found)}, which mean the same; keep one of them")
    return members[found[0]] if found else None


def _unpack(archive: zipfile.ZipFile, member: zipfile.ZipInfo, bytes_max: int) -> bytes:
    """Unpack one file, never more than `bytes_max` of it, whatever its declared size."""
    if member.flag_bits & _ENCRYPTED:
        raise _invalid(f"{_show(member.filename)} is encrypted; make the zip without a password")
    if member.compress_type not in _METHODS:
        raise _invalid(f"{_show(member.filename)} is packed by a method other than deflate")
    with archive.open(member) as stream:
        data = stream.read(bytes_max + 1)
    if len(data) > bytes_max:
        setting = "VKPROVIDER_PACKAGE_FILE_BYTES_MAX"
        raise too_large(f"{_show(member.filename)} has more bytes", bytes_max, setting)
    return data


def _text(member: zipfile.ZipInfo, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _invalid(f"{_show(member.filename)} is not UTF-8: byte {error.start}; save it as UTF-8") from None


class _Nesting(ContentHandler):
    """Limits the nesting of elements, because later readers of the file may be recursive."""

    def __init__(self) -> None:
        super().__init__()
        self._depth = 0

    def startElement(self, name: str, attrs: object) -> None:  # noqa: N802, ARG002 (named by xml.sax)
        self._depth += 1
        if self._depth > _XML_NESTING_MAX:
            raise SAXException(f"elements are nested more than {_XML_NESTING_MAX} deep")

    def endElement(self, name: str) -> None:  # noqa: N802, ARG002 (same)
        self._depth -= 1


def _check_xml(name: str, text: str) -> None:
    """Check that a file is well-formed XML in UTF-8 and declares no entities."""
    declared = _XML_ENCODING.match(text)
    if declared and declared[1].lower() not in _UTF_8:
        raise _invalid(f"{name} says that it is {_show(declared[1])}; save it as UTF-8 and say so")
    try:
        sax.parseString(text.encode(), _Nesting(), forbid_dtd=False, forbid_entities=True, forbid_external=True)
    except DefusedXmlException:
        raise _invalid(f"{name} declares entities or reads other files; write them out") from None
    except SAXParseException as error:
        where = f"line {error.getLineNumber()}, column {(error.getColumnNumber() or 0) + 1}"
        raise _invalid(f"{name} is not XML in {where}: {shorten(error.getMessage(), 120)}") from None
    except (SAXException, ValueError, LookupError) as error:
        raise _invalid(f"{name} is not XML: {shorten(str(error), 120)}") from None


def _show(name: str) -> str:
    return repr(shorten(name, 80))


def _invalid(what: str) -> InputError:
    return InputError(DefinitionReason.PACKAGE_INVALID, what)
