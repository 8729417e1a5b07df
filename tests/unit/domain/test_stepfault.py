"""What a step that failed is called on the Pod."""

import pytest

from vkprovider.api.errors import (
    DeadlineExceeded,
    Invalid,
    OutsideError,
    Throttled,
    TlsFailed,
    Unauthorized,
    Unavailable,
)
from vkprovider.domain.lablet.facts import Step
from vkprovider.domain.lablet.stepfault import fault_of, may_pass


@pytest.mark.parametrize(
    ("step", "error", "reason"),
    [
        (Step.IMPORT, Unavailable("w"), "WorkerUnreachable"),
        (Step.IMPORT, TlsFailed("w"), "WorkerError"),
        (Step.START, Unavailable("w", status=502), "WorkerError"),
        (Step.STOP, Unauthorized("w", status=403), "CredentialsInvalid"),
        (Step.IMPORT, Invalid("w", status=400), "ImportRefused"),
        (Step.START, Invalid("w", status=400), "StartRefused"),
        (Step.WIPE, Invalid("w", status=400), "WorkerError"),
        (Step.PROVISION, Unavailable("l"), "LDSUnavailable"),
        (Step.COLLECT, Unavailable("l", status=503), "LDSUnavailable"),
        (Step.ARCHIVE, Unauthorized("l", status=401), "LDSRefused"),
        (Step.DELETE_POD, Unavailable("a", status=503), "ApiUnavailable"),
        (Step.EXTRACT, Unauthorized("w", status=401), "CredentialsInvalid"),
        (Step.CLEAR_LEARNER, Invalid("a", status=422), "ApiRefused"),
        (Step.GRADE, Unavailable("g"), "GraderUnavailable"),
        (Step.GRADE, Invalid("g", status=400), "GraderRefused"),
    ],
)
def test_reason(step: Step, error: OutsideError, reason: str) -> None:
    assert fault_of(step, error) == (reason, error.message)


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (Unavailable("no connection"), True),
        (Unavailable("bad gateway", status=502), True),
        (Throttled("slow down"), True),
        (Unavailable("the device said no", status=500), False),
        (DeadlineExceeded("the device hangs"), False),
        (Invalid("it has none", status=400), False),
        (Unauthorized("no", status=401), False),
    ],
)
def test_what_may_pass(error: OutsideError, *, passes: bool) -> None:
    assert may_pass(error) is passes
