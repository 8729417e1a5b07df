"""Whatever an object can say is wrong with it is one line of the doctor, with the remedy of docs/why.md."""

from typing import Any

import msgspec
import pytest

from tests.support import docs
from tests.unit.cli.test_doctor_checks import NOW, pod, seen, waiting
from vkprovider.doctor.findings import Finding, named
from vkprovider.lablet.reasons import DEFINITIONS, TROUBLE, WORKERS
from vkprovider.labs.checks import lablets, workers
from vkprovider.platform.objects import CustomResource

FINE = {"WorkerReady", "ContentReady", "ContentStored"}
"""What is said when nothing is wrong."""
EVENTS_ONLY = {"UnclaimedLab", "Abandoned", "AddressUnresolved"}
"""What is said beside the condition Ready."""


def one_line(finding: Finding, reason: str) -> None:
    """Check the line of a reason."""
    assert finding.reason == reason
    assert f": {reason}: m" in finding.line
    assert "→" in finding.line
    remedies = {named(row.remedy, finding.object) for row in docs.why()[reason]}
    assert remedies & {finding.remedy, "Nothing."}


def resource(kind_spec: dict[str, Any], reason: str) -> CustomResource:
    condition = {"type": "Ready", "status": "False", "reason": reason, "message": "m"}
    found = {
        "metadata": {"name": "w", "generation": 1},
        "spec": kind_spec,
        "status": {"conditions": [condition], "observedGeneration": 1},
    }
    return msgspec.json.decode(msgspec.json.encode(found), type=CustomResource)


@pytest.mark.parametrize("reason", sorted(TROUBLE.keys() - {"OutOf"}))
def test_pod_in_trouble(reason: str) -> None:
    [finding] = lablets.check_pods([pod(containerStatuses=waiting(reason))], NOW)
    one_line(finding, reason)


@pytest.mark.parametrize("reason", sorted(WORKERS.keys() - FINE - EVENTS_ONLY))
def test_worker_that_is_not_ready(reason: str) -> None:
    good = seen()
    bad = msgspec.structs.replace(good, resource=resource(good.resource.spec, reason))
    [finding] = workers.check_worker(bad, logins="n-logins", before="n", installation="i")
    one_line(finding, reason)


@pytest.mark.parametrize("reason", sorted(DEFINITIONS.keys() - FINE))
def test_definition_that_is_not_ready(reason: str) -> None:
    spec = {"version": "1", "source": {"inline": "lab: {}"}}
    [finding] = lablets.check_definition(resource(spec, reason), None)
    one_line(finding, reason)
