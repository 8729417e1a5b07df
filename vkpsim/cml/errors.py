"""The one table of CML's refusals: status code, text, and whether a primary source states them.

What is marked `unverified` is a recommended choice that no document or recording of a real controller confirms.
Correct it here once a real controller has answered, and mark it verified; codes and texts appear nowhere else.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import msgspec


@dataclass(frozen=True, slots=True)
class Refusal:
    """A row of the table."""

    status: int
    text: str
    """The `description` of the answer, a format string."""
    verified: bool
    """Whether both code and text come from the OpenAPI document, a recording, or Cisco's client or tests."""


def _sure(status: int, text: str) -> Refusal:
    return Refusal(status, text, verified=True)


def _unverified(status: int, text: str) -> Refusal:
    return Refusal(status, text, verified=False)


class E(Enum):
    """The table; one member per reason to refuse."""

    # the client
    NO_TOKEN = _unverified(401, "401 Unauthorized: No authorization token provided.")
    BAD_TOKEN = _unverified(401, "401 Unauthorized: Token is invalid, expired or revoked.")
    BAD_PASSWORD = _unverified(403, "Authentication failed!")
    ADMIN_ONLY = _unverified(403, "User does not have required access to perform this operation.")
    MAINTENANCE = _unverified(403, "System is in maintenance mode.")

    # the request
    NO_SUCH_PATH = _unverified(404, "The requested URL was not found on the server.")
    TOO_LARGE = _unverified(413, "Request entity too large.")
    INVALID = _sure(400, "{details}")
    BAD_TOPOLOGY = _unverified(400, "Bad request: {details}")
    INTERNAL = _sure(500, "The API at {path} encountered an unexpected error. Please report this problem to support.")

    # something is missing; Cisco's client recognises these by their text
    LAB_NOT_FOUND = _sure(404, "Lab not found: {id}")
    NODE_NOT_FOUND = _sure(404, "Node not found: {id}")
    INTERFACE_NOT_FOUND = _sure(404, "Interface not found: {id}")
    LINK_NOT_FOUND = _sure(404, "Link not found: {id}")
    ANNOTATION_NOT_FOUND = _sure(404, "Annotation not found: {id}")
    SMART_ANNOTATION_NOT_FOUND = _sure(404, "SmartAnnotation not found: {id}")
    USER_NOT_FOUND = _sure(404, "User does not exist: {id}")
    GROUP_NOT_FOUND = _unverified(404, "Group does not exist: {id}")
    POOL_NOT_FOUND = _unverified(404, "Resource pool does not exist: {id}")
    COMPUTE_NOT_FOUND = _unverified(404, "Compute host not found: {id}")
    NOTICE_NOT_FOUND = _unverified(404, "System notice not found: {id}")
    CONNECTOR_NOT_FOUND = _unverified(404, "External connector not found: {id}")
    REPOSITORY_NOT_FOUND = _unverified(404, "Lab repository not found: {id}")
    DEFINITION_NOT_FOUND = _unverified(404, "Definition not found: {id}")
    CAPTURE_NOT_FOUND = _unverified(404, "Packet capture not found: {id}")
    CONSOLE_NOT_FOUND = _unverified(404, "Console not found: node {id} has no running console on line {line}.")
    VNC_NOT_FOUND = _unverified(404, "VNC not found: node {id} has no running VNC server.")

    # the state forbids it
    CANNOT_START = _unverified(400, "Cannot start lab: {reason}")
    LAB_RUNNING_WIPE = _unverified(400, "Lab {id} must be stopped first.")
    LAB_NOT_WIPED = _unverified(400, "Lab {id} must be stopped and wiped first.")
    NODE_RUNNING = _unverified(400, "Node {id} must be stopped first.")
    NODE_NOT_WIPED = _unverified(400, "Node {id} must be stopped and wiped first.")
    NODE_LOCKED = _unverified(400, "Node {id} cannot be changed in state {state}.")
    INTERFACES_LOCKED = _unverified(404, "Node {id}: physical configuration locked.")
    NOT_EXTRACTABLE = _unverified(400, "Node {id} does not support configuration extraction in state {state}.")
    NOT_CLONEABLE = _unverified(400, "Node {id} must be stopped to clone its image.")
    LAST_COMPUTE = _unverified(409, "Compute host {id} must be unregistered first.")

    # the arguments clash with what is there
    INTERFACE_IN_USE = _unverified(400, "Interface {id} already in use")
    INTERFACE_LIMIT = _unverified(400, "Node {id} has no free interface.")
    NODE_LABEL_TAKEN = _unverified(400, "Node label already in use: {label}")
    NO_SERIAL_PORT = _sure(400, "Serial port does not exist on node")
    NO_L3_ADDRESSES = _sure(400, "Can't get L3 addresses of an external_connector.")
    NO_CONDITION = _unverified(400, "Link {id} has no condition.")
    USER_EXISTS = _unverified(422, "User already exists: {id}")
    GROUP_EXISTS = _sure(422, "Group already exists")
    WEAK_PASSWORD = _sure(403, "Password validation failure! Reason: Length")
    WRONG_OLD_PASSWORD = _unverified(403, "Old password is incorrect.")
    DEFINITION_EXISTS = _unverified(400, "Definition already exists: {id}")
    DEFINITION_READ_ONLY = _unverified(400, "Definition is read-only: {id}")
    LICENSING_REFUSED = _unverified(400, "Licensing request refused: {reason}")


class CmlError(Exception):
    """A refusal on its way to the client as `{"code": 404, "description": "Lab not found: …"}`."""

    def __init__(self, reason: E, /, **values: object) -> None:
        self.reason = reason
        self.status = reason.value.status
        self.description = reason.value.text.format(**values)
        super().__init__(self.description)


def body_of(status: int, description: str) -> bytes:
    """Encode the body that every refusal has."""
    return msgspec.json.encode({"code": status, "description": description})


def invalid(message: str, location: Sequence[str | int] = ("body",), kind: str = "value_error") -> CmlError:
    """Make a validation error as CML words it: the description is itself a JSON text.

    Example of the description: `{"Input validation failed":[{"location":["body","name"],"type":"string_too_short",
    "message":"…"}]}`.
    """
    details = {"Input validation failed": [{"location": list(location), "type": kind, "message": message}]}
    return CmlError(E.INVALID, details=msgspec.json.encode(details).decode())
