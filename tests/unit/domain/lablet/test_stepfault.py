"""What a step that failed is called on the Pod."""

import pytest

from vkprovider.api.errors import (
    DeadlineExceeded,
    Forbidden,
    Invalid,
    OutsideError,
    Throttled,
    TlsFailed,
    Unauthorized,
    Unavailable,
)
from vkprovider.api.messages import Fault
from vkprovider.domain.lablet.decisions.stepfault import fault_of, may_pass
from vkprovider.domain.lablet.steps import Kind


@pytest.mark.parametrize(
    ("kind", "error", "reason"),
    [
        (Kind.IMPORT, Unavailable("w"), "WorkerUnreachable"),
        (Kind.IMPORT, TlsFailed("w"), "WorkerError"),
        (Kind.START, Unavailable("w", status=502), "WorkerError"),
        (Kind.STOP, Unauthorized("w", status=403), "CredentialsInvalid"),
        (Kind.IMPORT, Invalid("w", status=400), "ImportRefused"),
        (Kind.START, Invalid("w", status=400), "StartRefused"),
        (Kind.WIPE, Invalid("w", status=400), "WorkerError"),
        (Kind.PROVISION, Unavailable("l"), "LDSUnavailable"),
        (Kind.COLLECT, Unavailable("l", status=503), "LDSUnavailable"),
        (Kind.ARCHIVE, Unauthorized("l", status=401), "LDSRefused"),
        (Kind.DELETE_POD, Unavailable("a", status=503), "ApiUnavailable"),
        (Kind.EXTRACT, Unauthorized("w", status=401), "CredentialsInvalid"),
        (Kind.CLEAR_LEARNER, Invalid("a", status=422), "ApiRefused"),
        (Kind.GRADE, Unavailable("g"), "GraderUnavailable"),
        (Kind.GRADE, Invalid("g", status=400), "GraderRefused"),
    ],
)
def test_reason(kind: Kind, error: OutsideError, reason: str) -> None:
    assert fault_of(kind, error) == Fault(reason, error.message)


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (Unavailable("no connection"), True),
        (Unavailable("bad gateway", status=502), True),
        (Throttled("slow down"), True),
        (Unavailable("the device said no", status=500), False),
        (DeadlineExceeded("the device hangs"), False),
        (Invalid("it has none", status=400), False),
        (Unauthorized("no", status=401), True),
        (TlsFailed("another certificate"), True),
        (Forbidden("no", status=403), False),
    ],
)
def test_what_may_pass(error: OutsideError, *, passes: bool) -> None:
    assert may_pass(error) is passes
