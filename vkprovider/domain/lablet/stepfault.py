"""What a step that failed is called."""

from typing import Final

from vkprovider.api.errors import DeadlineExceeded, Invalid, OutsideError, Unauthorized, Unavailable
from vkprovider.domain.lablet.facts import Step

_DELIVERY: Final = frozenset({Step.PROVISION, Step.ARCHIVE, Step.GRADE, Step.COLLECT})
"""Steps that ask the LDS or the grader."""
_API_SERVER: Final = frozenset({Step.CONFIRM_GONE, Step.DELETE_POD, Step.CLEAR_LEARNER, Step.RETURN_TO_POOL})
"""Steps that ask the API server."""
_BY_THE_WAY: Final = frozenset({0, 429, 502, 503, 504})
"""Statuses of no answer at all, and of what stands before a server."""


def fault_of(step: Step, error: OutsideError) -> tuple[str, str]:
    """Name what failed: the reason, in a word that docs/why.md explains, and the message.

    Args:
        step: What was being done.
        error: What came of it.
    """
    if step in _API_SERVER:
        return api_fault(error)
    if step in _DELIVERY:
        away = isinstance(error, Unavailable)
        if step is Step.GRADE:
            return "GraderUnavailable" if away else "GraderRefused", error.message
        return "LDSUnavailable" if away else "LDSRefused", error.message
    if isinstance(error, Invalid) and step in {Step.IMPORT, Step.START}:
        return "ImportRefused" if step is Step.IMPORT else "StartRefused", error.message
    return worker_fault(error)


def api_fault(error: OutsideError) -> tuple[str, str]:
    """Name what the API server did."""
    return "ApiUnavailable" if isinstance(error, Unavailable) else "ApiRefused", error.message


def worker_fault(error: OutsideError) -> tuple[str, str]:
    """Name what a worker did."""
    if isinstance(error, Unauthorized):
        return "CredentialsInvalid", error.message
    if isinstance(error, Unavailable) and not error.status:
        return "WorkerUnreachable", error.message
    return "WorkerError", error.message


def may_pass(error: OutsideError) -> bool:
    """Tell whether to ask again soon: nobody answered. A device that takes CML too long will do so again."""
    return isinstance(error, Unavailable) and not isinstance(error, DeadlineExceeded) and error.status in _BY_THE_WAY
