"""`devices.yaml` of a content package: the author's data on devices beyond the topology.

    - label: workstation            # as in the topology
      node_definition: ubuntu       # optional, as in the topology
      image_definition: desktop-1   # optional; instead of the topology's
      port_tags: ["vnc:5066"]       # optional, tags that the device has in the topology
      is_user_visible: true         # optional; instead of what follows from its tags

Credentials must not be there: packages end up in ConfigMaps.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from vkprovider.lablet.reasons import DefinitionReason
from vkprovider.labs.pure.topology import yamltext
from vkprovider.labs.pure.topology.topology import Device
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
        raise _invalid("must be a list of devices")
    known = {device.label: device for device in devices}
    found: dict[str, DeviceEntry] = {}
    for i, item in enumerate(document):
        entry = _entry(item, f"[{i}]", known)
        if entry.label in found:
            raise _invalid(f"[{i}].label: {entry.label!r} is in it twice")
        found[entry.label] = entry
    return found


def _entry(item: Any, place: str, known: dict[str, Device]) -> DeviceEntry:
    if not isinstance(item, dict):
        raise _invalid(f"{place} must be a mapping with `label`")
    for name, value in item.items():
        if name == "access_credentials":
            raise _invalid(f"{place}.access_credentials: put them into the Secret that spec.deviceSecretName names")
        kind = _FIELDS.get(name) if isinstance(name, str) else None
        if kind is None:
            raise _invalid(f"{place} has an unknown field {shorten(str(name), 40)!r}; known are {', '.join(_FIELDS)}")
        if not isinstance(value, kind):
            raise _invalid(f"{place}.{name} must be a {_WORDS[kind]}")
    label = item.get("label")
    device = known.get(label) if isinstance(label, str) else None
    if device is None:
        raise _invalid(f"{place}.label: the topology has no device {shorten(str(label), 80)!r}")
    if item.get("node_definition", device.definition) != device.definition:
        raise _invalid(f"{place}.node_definition: {device.label!r} is a {device.definition} in the topology")
    for tag in item.get("port_tags", ()):
        if tag not in device.tags:
            raise _invalid(f"{place}.port_tags: {device.label!r} has no tag {shorten(str(tag), 80)!r} in the topology")
    return DeviceEntry(device.label, item.get("image_definition", ""), item.get("is_user_visible"))


def _load(text: str) -> Any:
    try:
        return yamltext.load(text)[0]
    except InputError as error:
        raise _invalid(f"cannot be read: {error.message}") from None


def _invalid(what: str) -> InputError:
    return InputError(DefinitionReason.PACKAGE_INVALID, f"devices.yaml {what}")
