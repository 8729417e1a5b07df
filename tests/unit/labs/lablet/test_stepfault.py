"""What a step that failed is called on the Pod."""

import pytest

from tests.unit.labs.lablet.test_steps import step_classes
from vkprovider.labs.pure.lablet import steps
from vkprovider.labs.pure.lablet.decisions.stepfault import fault_of, may_pass
from vkprovider.labs.pure.lablet.steps import Step
from vkprovider.platform.errors import (
    DeadlineExceeded,
    Forbidden,
    Invalid,
    OutsideError,
    Throttled,
    TlsFailed,
    Unauthorized,
    Unavailable,
)
from vkprovider.platform.messages import Fault
from vkprovider.platform.reasons import reason_of


@pytest.mark.parametrize(
    ("step", "error", "reason"),
    [
        (steps.Import, Unavailable("w"), "WorkerUnreachable"),
        (steps.Import, TlsFailed("w"), "WorkerError"),
        (steps.Start, Unavailable("w", status=502), "WorkerError"),
        (steps.Stop, Unauthorized("w", status=403), "CredentialsInvalid"),
        (steps.Import, Invalid("w", status=400), "ImportRefused"),
        (steps.Start, Invalid("w", status=400), "StartRefused"),
        (steps.Wipe, Invalid("w", status=400), "WorkerError"),
        (steps.Provision, Unavailable("l"), "LDSUnavailable"),
        (steps.Collect, Unavailable("l", status=503), "LDSUnavailable"),
        (steps.ArchiveSession, Unauthorized("l", status=401), "LDSRefused"),
        (steps.ConfirmDeletion, Unavailable("a", status=503), "ApiUnavailable"),
        (steps.Extract, Unauthorized("w", status=401), "CredentialsInvalid"),
        (steps.ClearLearner, Invalid("a", status=422), "ApiRefused"),
        (steps.RestoreUsername, Unavailable("a"), "ApiUnavailable"),
        (steps.RestoreUsername, Unauthorized("a", status=401), "ApiRefused"),
        (steps.RestoreUsername, Forbidden("a", status=403), "ApiRefused"),
        (steps.Grade, Unavailable("g"), "GraderUnavailable"),
        (steps.Grade, Invalid("g", status=400), "GraderRefused"),
    ],
)
def test_reason(step: type[Step], error: OutsideError, reason: str) -> None:
    assert fault_of(step, error) == Fault(reason_of(reason), error.message)


@pytest.mark.parametrize("step", sorted(step_classes(), key=str))
@pytest.mark.parametrize("error", [Unavailable("x"), Unauthorized("x", status=401), Invalid("x", status=400)])
def test_only_a_step_that_calls_the_worker_shows_a_fault_of_it(step: type[Step], error: OutsideError) -> None:
    of_worker = {"WorkerUnreachable", "CredentialsInvalid", "WorkerError", "ImportRefused", "StartRefused"}
    assert (fault_of(step, error).reason in of_worker) is (step.calls is steps.System.WORKER)


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
