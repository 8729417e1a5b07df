"""Node definitions, image definitions and the folder of uploaded images."""

from typing import Any, Final

import yaml

from vkpsim.cml.calls import Call, Route, Text
from vkpsim.cml.errors import CmlError, E, invalid
from vkpsim.cml.world.definition_json import from_json, image_definition_json, node_definition_json, simplified_json
from vkpsim.cml.world.definitions import Definition, image_id
from vkpsim.cml.world.platforms import DEFINITIONS

SUCCESS = "Success"


def node_definitions(call: Call) -> dict[str, dict[str, Any]]:
    """Return all node definitions by id, shipped and uploaded."""
    shipped = {name: node_definition_json(definition) for name, definition in DEFINITIONS.items()}
    return shipped | call.sim.system.node_definitions


def _images(call: Call) -> dict[str, dict[str, Any]]:
    shipped = {str(image_id(one)): image_definition_json(one) for one in DEFINITIONS.values() if image_id(one)}
    return shipped | call.sim.system.image_definitions


def _find(definitions: dict[str, dict[str, Any]], call: Call) -> dict[str, Any]:
    found = definitions.get(call.path["definition"])
    if found is None:
        raise CmlError(E.DEFINITION_NOT_FOUND, id=call.path["definition"])
    return found


def _read(call: Call) -> dict[str, Any]:
    """Read a definition, JSON or YAML."""
    try:
        given = yaml.safe_load(call.body)
    except yaml.YAMLError as error:
        raise invalid(str(error), kind="yaml_invalid") from error
    if not isinstance(given, dict) or not isinstance(given.get("id"), str):
        raise invalid("Field required", ("body", "id"), "missing")
    return given


def _shown(call: Call, definition: dict[str, Any]) -> Any:
    """Answer with a definition: as JSON if asked for, else as YAML, which is a JSON text before 2.9."""
    if call.flag("json"):
        return definition
    text = yaml.safe_dump(definition, sort_keys=False)
    return Text(text, "application/yaml") if call.sim.at_least(2, 9) else text


def list_node_definitions(call: Call) -> list[dict[str, Any]]:
    """Show all node definitions."""
    return list(node_definitions(call).values())


def list_simplified(call: Call) -> list[dict[str, Any]]:
    """Show the fields of each node definition that a user interface needs."""
    images = image_ids_by_node_definition(call)
    return [simplified_json(definition, images[name]) for name, definition in node_definitions(call).items()]


def image_ids_by_node_definition(call: Call) -> dict[str, list[str]]:
    """List the images of each node definition."""
    found: dict[str, list[str]] = {name: [] for name in node_definitions(call)}
    for image in _images(call).values():
        found[image["node_definition_id"]].append(image["id"])
    return found


def get_node_definition(call: Call) -> Any:
    """Show a node definition, as YAML unless `json` is asked for."""
    return _shown(call, _find(node_definitions(call), call))


def add_node_definition(call: Call) -> str:
    """Add a node definition."""
    call.require_admin()
    given = _read(call)
    if given["id"] in node_definitions(call):
        raise CmlError(E.DEFINITION_EXISTS, id=given["id"])
    return _put_node_definition(call, given)


def change_node_definition(call: Call) -> str:
    """Replace a node definition."""
    call.require_admin()
    given = _read(call)
    present = node_definitions(call).get(given["id"])
    if present is None:
        raise CmlError(E.DEFINITION_NOT_FOUND, id=given["id"])
    if present["general"]["read_only"]:
        raise CmlError(E.DEFINITION_READ_ONLY, id=given["id"])
    return _put_node_definition(call, given)


def _put_node_definition(call: Call, given: dict[str, Any]) -> str:
    try:
        definition: Definition = from_json(given)
    except (KeyError, TypeError, AttributeError) as error:
        raise invalid(f"Field required: {error}", ("body",), "missing") from error
    native = given["sim"]["linux_native"]
    for name in ("disk_driver", "nic_driver") if native["libvirt_domain_driver"] == "kvm" else ():
        if not native.get(name):
            message = f"Value error, {name} must be specified when libvirt_domain_driver is kvm"
            raise invalid(message, ("body", "sim", "linux_native"))
    given["general"].setdefault("read_only", False)
    call.sim.system.node_definitions[definition.id] = given
    call.sim.world.definitions[definition.id] = definition
    return SUCCESS


def delete_node_definition(call: Call) -> None:
    """Remove a node definition."""
    call.require_admin()
    definition = _find(node_definitions(call), call)
    if definition["general"]["read_only"] or definition["id"] not in call.sim.system.node_definitions:
        raise CmlError(E.DEFINITION_READ_ONLY, id=definition["id"])
    del call.sim.system.node_definitions[definition["id"]]
    del call.sim.world.definitions[definition["id"]]


def protect_node_definition(call: Call) -> dict[str, Any]:
    """Set whether a node definition is read-only."""
    call.require_admin()
    definition = _find(node_definitions(call), call)
    definition["general"]["read_only"] = call.read(bool)
    call.sim.system.node_definitions[definition["id"]] = definition
    return definition


def images_of(call: Call) -> list[dict[str, Any]]:
    """Show the image definitions of a node definition."""
    definition = _find(node_definitions(call), call)
    return [image for image in _images(call).values() if image["node_definition_id"] == definition["id"]]


def list_image_definitions(call: Call) -> list[dict[str, Any]]:
    """Show all image definitions."""
    return list(_images(call).values())


def get_image_definition(call: Call) -> Any:
    """Show an image definition, as YAML unless `json` is asked for."""
    return _shown(call, _find(_images(call), call))


def add_image_definition(call: Call) -> str:
    """Add an image definition."""
    call.require_admin()
    given = _read(call)
    if given["id"] in _images(call):
        raise CmlError(E.DEFINITION_EXISTS, id=given["id"])
    return _put_image_definition(call, given)


def change_image_definition(call: Call) -> str:
    """Replace an image definition."""
    call.require_admin()
    given = _read(call)
    present = _images(call).get(given["id"])
    if present is None:
        raise CmlError(E.DEFINITION_NOT_FOUND, id=given["id"])
    if present["read_only"]:
        raise CmlError(E.DEFINITION_READ_ONLY, id=given["id"])
    return _put_image_definition(call, given)


def _put_image_definition(call: Call, given: dict[str, Any]) -> str:
    if given.get("node_definition_id") not in node_definitions(call):
        raise invalid("Unknown node definition", ("body", "node_definition_id"))
    call.sim.system.image_definitions[given["id"]] = {"read_only": False, **given}
    return SUCCESS


def delete_image_definition(call: Call) -> None:
    """Remove an image definition."""
    call.require_admin()
    definition = _find(_images(call), call)
    if definition["read_only"] or definition["id"] not in call.sim.system.image_definitions:
        raise CmlError(E.DEFINITION_READ_ONLY, id=definition["id"])
    del call.sim.system.image_definitions[definition["id"]]


def protect_image_definition(call: Call) -> dict[str, Any]:
    """Set whether an image definition is read-only."""
    call.require_admin()
    definition = _find(_images(call), call)
    definition["read_only"] = call.read(bool)
    call.sim.system.image_definitions[definition["id"]] = definition
    return definition


def drop_folder(call: Call) -> list[str]:
    """List the uploaded image files."""
    return call.sim.system.dropped_images


def upload_image(call: Call) -> str:
    """Upload an image file; only its name is kept."""
    call.require_admin()
    name = call.headers.get("X-Original-File-Name", "")
    if not name:
        raise invalid("Field required", ("header", "X-Original-File-Name"), "missing")
    if name not in call.sim.system.dropped_images:
        call.sim.system.dropped_images.append(name)
    return SUCCESS


def delete_image(call: Call) -> str:
    """Remove an uploaded image file."""
    call.require_admin()
    name = call.path["definition"]
    if name not in call.sim.system.dropped_images:
        raise CmlError(E.DEFINITION_NOT_FOUND, id=name)
    call.sim.system.dropped_images.remove(name)
    return SUCCESS


_COLLECTIONS: Final = (
    Route("GET", "/node_definitions", list_node_definitions),
    Route("POST", "/node_definitions", add_node_definition),
    Route("PUT", "/node_definitions", change_node_definition),
    Route("GET", "/image_definitions", list_image_definitions),
    Route("POST", "/image_definitions", add_image_definition),
    Route("PUT", "/image_definitions", change_image_definition),
    Route("GET", "/list_image_definition_drop_folder", drop_folder),
)
ROUTES = (
    *_COLLECTIONS,
    *(Route(route.method, f"{route.path}/", route.handler) for route in _COLLECTIONS),  # as the client of 2.8 asks
    Route("GET", "/simplified_node_definitions", list_simplified),
    Route("GET", "/node_definitions/{definition}", get_node_definition),
    Route("DELETE", "/node_definitions/{definition}", delete_node_definition),
    Route("PUT", "/node_definitions/{definition}/read_only", protect_node_definition),
    Route("GET", "/node_definitions/{definition}/image_definitions", images_of),
    Route("GET", "/image_definitions/{definition}", get_image_definition),
    Route("DELETE", "/image_definitions/{definition}", delete_image_definition),
    Route("PUT", "/image_definitions/{definition}/read_only", protect_image_definition),
    Route("POST", "/images/upload", upload_image),
    Route("DELETE", "/images/manage/{definition}", delete_image),
)
