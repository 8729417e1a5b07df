"""Annotations drawn beside a topology, and the smart ones derived from tags."""

from typing import Any

import msgspec

from vkpsim.cml.calls import Call, Route
from vkpsim.cml.errors import CmlError, E
from vkpsim.cml.world import editing
from vkpsim.cml.world.drawing import ANNOTATION, SmartAnnotationChange


def list_annotations(call: Call) -> list[dict[str, Any]]:
    """Show the annotations of a lab."""
    return list(call.lab().annotations.values())


def add_annotation(call: Call) -> dict[str, Any]:
    """Add an annotation."""
    lab = call.lab("lab_edit")
    annotation = {**msgspec.to_builtins(call.read(ANNOTATION)), "id": call.sim.new_id()}
    lab.annotations[annotation["id"]] = annotation
    editing.touch(call.sim.world, call.now, lab, "CREATED", "Annotation", annotation["id"])
    return annotation


def _annotation(call: Call, *, smart: bool, permission: str = "lab_view") -> dict[str, Any]:
    lab = call.lab(permission)
    found = (lab.smart_annotations if smart else lab.annotations).get(call.path["annotation"])
    if found is None:
        reason = E.SMART_ANNOTATION_NOT_FOUND if smart else E.ANNOTATION_NOT_FOUND
        raise CmlError(reason, id=call.path["annotation"])
    return found


def get_annotation(call: Call) -> dict[str, Any]:
    """Show an annotation."""
    return _annotation(call, smart=False)


def change_annotation(call: Call) -> dict[str, Any]:
    """Change an annotation; a change names the annotation's type."""
    annotation = _annotation(call, smart=False, permission="lab_edit")
    given = call.read(dict[str, Any])
    kept = {key: value for key, value in annotation.items() if key not in {"id", "type"}}
    annotation.update(msgspec.to_builtins(call.check(kept | given, ANNOTATION)))
    return annotation


def delete_annotation(call: Call) -> None:
    """Remove an annotation."""
    annotation = _annotation(call, smart=False, permission="lab_edit")
    del call.lab().annotations[annotation["id"]]


def list_smart_annotations(call: Call) -> list[dict[str, Any]]:
    """Show the smart annotations of a lab, one per tag."""
    return list(call.lab().smart_annotations.values())


def get_smart_annotation(call: Call) -> dict[str, Any]:
    """Show a smart annotation."""
    return _annotation(call, smart=True)


def change_smart_annotation(call: Call) -> dict[str, Any]:
    """Change how a smart annotation looks."""
    annotation = _annotation(call, smart=True, permission="lab_edit")
    annotation.update(msgspec.to_builtins(call.read(SmartAnnotationChange)))
    return annotation


ROUTES = (
    Route("GET", "/labs/{lab}/annotations", list_annotations),
    Route("POST", "/labs/{lab}/annotations", add_annotation),
    Route("GET", "/labs/{lab}/annotations/{annotation}", get_annotation),
    Route("PATCH", "/labs/{lab}/annotations/{annotation}", change_annotation),
    Route("DELETE", "/labs/{lab}/annotations/{annotation}", delete_annotation),
    Route("GET", "/labs/{lab}/smart_annotations", list_smart_annotations),
    Route("GET", "/labs/{lab}/smart_annotations/{annotation}", get_smart_annotation),
    Route("PATCH", "/labs/{lab}/smart_annotations/{annotation}", change_smart_annotation),
)
