"""Why a request for a user lab is refused: a value, which the page writes in the words of its dialect."""

from enum import Enum
from typing import Final, NamedTuple

BODY: Final = "body"
USERNAME: Final = ("path", "username")


class Grounds(Enum):
    """The grounds of a rejection, each with the word that clients compare and the HTTP status."""

    INVALID_TOKEN = "invalid_token", 401
    PERMISSION_DENIED = "permission_denied", 403
    INSUFFICIENT_QUOTA = "insufficient_quota", 403
    UNKNOWN_USER = "unknown_user", 404
    NOT_SUPPORTED = "not_supported", 404
    LAB_EXISTS = "lab_exists", 409
    OPERATION_IN_PROGRESS = "operation_in_progress", 409
    NAMESPACE_CONFLICT = "namespace_conflict", 409
    CANNOT_EXTEND = "cannot_extend", 409
    CANNOT_RESET = "cannot_reset", 409
    UNKNOWN_IMAGE = "unknown_image", 400
    INVALID_JSON = "json_invalid", 422
    INVALID_BODY = "value_error", 422
    INVALID_LAB_SIZE = "invalid_lab_size", 422
    INVALID_REFERENCE = "invalid_docker_reference", 422
    DELETE_FAILED = "delete_failed", 500
    UNAVAILABLE = "unavailable", 503

    @property
    def word(self) -> str:
        """The `type` of the answer."""
        return self.value[0]

    @property
    def status(self) -> int:
        """The HTTP status of the answer."""
        return self.value[1]


class Rejection(NamedTuple):
    """Why a request is refused.

    Attributes:
        grounds: Its kind.
        msg: What is wrong and what to do about it, for people.
        loc: The part of the request that is to blame, such as `("body", "options", "size")`; empty if it is none.
    """

    grounds: Grounds
    msg: str
    loc: tuple[str, ...] = ()
