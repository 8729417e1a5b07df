"""The fault that a failed step shows on the Pod, and its report while the step waits to be tried again."""

from typing import Final

from vkprovider.lablet.reasons import Progress, Trouble, WorkerReason
from vkprovider.lablet.standing import State
from vkprovider.labs.pure.lablet.decisions.session import closing_state
from vkprovider.labs.pure.lablet.facts import Facts, Report, phase_of
from vkprovider.labs.pure.lablet.steps import ChangeDevice, Import, Start, Step, System
from vkprovider.platform.errors import DeadlineExceeded, Invalid, OutsideError, TlsFailed, Unauthorized, Unavailable
from vkprovider.platform.messages import Fault

_TRANSIENT: Final = frozenset({0, 429, 502, 503, 504})
"""Statuses of no answer at all, and of what stands before a server."""


def fault_of(step: type[Step], error: OutsideError) -> Fault:
    """Return the fault of a failed step; docs/why.md explains its reason.

    Args:
        step: The class of the step that failed.
        error: What the called system answered.
    """
    unavailable = isinstance(error, Unavailable)
    if System.GRADER in step.calls:
        return Fault(Trouble.GRADER_UNAVAILABLE if unavailable else Trouble.GRADER_REFUSED, error.message)
    if System.LDS in step.calls:  # of a step that calls the worker too, `StepFailed` has the worker's fault
        return Fault(Trouble.LDS_UNAVAILABLE if unavailable else Trouble.LDS_REFUSED, error.message)
    if System.WORKER not in step.calls:
        return api_fault(error)
    if isinstance(error, Invalid) and step in {Import, Start, ChangeDevice}:
        return Fault(Trouble.IMPORT_REFUSED if step is Import else Trouble.START_REFUSED, error.message)
    return worker_fault(error)


def api_fault(error: OutsideError) -> Fault:
    """Return the fault of a failed API-server call."""
    return Fault(Trouble.API_UNAVAILABLE if isinstance(error, Unavailable) else Trouble.API_REFUSED, error.message)


def worker_fault(error: OutsideError) -> Fault:
    """Return the fault of a failed call of a worker."""
    if isinstance(error, Unauthorized):
        return Fault(WorkerReason.CREDENTIALS_INVALID, error.message)
    if isinstance(error, Unavailable) and not error.status:
        return Fault(Trouble.WORKER_UNREACHABLE, error.message)
    return Fault(WorkerReason.WORKER_ERROR, error.message)


def may_pass(error: OutsideError) -> bool:
    """Return whether a retry may soon succeed.

    It may if there was no answer, unless a device takes CML too long, and if CML's password or certificate has changed:
    the CMLWorker may soon be given the new one.
    """
    if isinstance(error, Unauthorized | TlsFailed):
        return True
    return isinstance(error, Unavailable) and not isinstance(error, DeadlineExceeded) and error.status in _TRANSIENT


def fault_report(facts: Facts, fault: Fault) -> Report | None:
    """Return the report of a Pod whose failed step waits to be tried again; None leaves its status as it is."""
    pod, claim = facts.pod, facts.claim
    if pod is None or pod.terminal:
        return None
    text = f"{fault.message}; trying again"
    ending = pod.metadata.deletion_timestamp is not None or (claim is not None and claim.outcome)
    state = State.STOPPING if ending else State.INSTANTIATING
    if claim is not None and claim.closing_reason and not ending:
        state = closing_state(facts, claim)
    return Report(state, phase_of(facts), Fault(Progress.CLEANING_UP if ending else fault.reason, text), facts.devices)
