"""What a step that failed is called."""

from typing import Final

from vkprovider.api.errors import Invalid, OutsideError, Unauthorized, Unavailable
from vkprovider.domain.facts import Step

_DELIVERY: Final = frozenset({Step.PROVISION, Step.ARCHIVE, Step.GRADE, Step.COLLECT})
"""Steps that ask the LDS or the grader."""
_API_SERVER: Final = frozenset(
    {Step.CONFIRM_GONE, Step.DELETE_POD, Step.CLEAR_LEARNER, Step.RETURN_TO_POOL, Step.EXTRACT}
)
"""Steps in which only the API server can fail; what a worker cannot extract is noted, not raised."""


def fault_of(step: Step, error: OutsideError) -> tuple[str, str]:
    """Name what failed: the reason, in a word that docs/why.md explains, and the message.

    Args:
        step: What was being done.
        error: What came of it.
    """
    if step in _API_SERVER:
        return "ApiUnavailable" if isinstance(error, Unavailable) else "ApiRefused", error.message
    if step in _DELIVERY:
        away = isinstance(error, Unavailable)
        if step is Step.GRADE:
            return "GraderUnavailable" if away else "GraderRefused", error.message
        return "LDSUnavailable" if away else "LDSRefused", error.message
    if isinstance(error, Unauthorized):
        return "CredentialsInvalid", error.message
    if isinstance(error, Unavailable):
        return "WorkerUnreachable" if not error.status else "WorkerError", error.message
    if isinstance(error, Invalid):
        return {Step.IMPORT: "ImportRefused", Step.START: "StartRefused"}.get(step, "WorkerError"), error.message
    return "WorkerError", error.message
