"""What the doctor tells an instructor about the namespace of a class."""

from typing import Any

import msgspec
import pytest

from tests.support.docs import described
from vkprovider.doctor.findings import Finding, Level
from vkprovider.doctor.rights import CheckedRight
from vkprovider.labs.checks import classroom
from vkprovider.labs.checks.classroom import Quota
from vkprovider.platform.objects import CustomResource

GRANT = "kubectl lablet grant alice -n friday"


def resource(
    name: str, spec: dict[str, Any], *, ready: bool = True, labels: dict[str, str] | None = None
) -> CustomResource:
    condition = {"type": "Ready", "status": str(ready), "reason": "Unreachable", "message": "m"}
    found = {
        "metadata": {"name": name, "generation": 1, "labels": labels or {}},
        "spec": spec,
        "status": {"conditions": [condition], "observedGeneration": 1},
    }
    return msgspec.json.decode(msgspec.json.encode(found), type=CustomResource)


def definition(name: str = "netlab", environment: str = "default", owner: str = "friday") -> CustomResource:
    spec = {"version": "1", "environment": environment, "source": {"inline": "lab: {}"}}
    return resource(name, spec, labels={"vkprovider.io/owner-namespace": owner} if owner else {})


def worker(name: str = "w", *, ready: bool = True, environment: str = "default") -> CustomResource:
    return resource(name, {"url": "https://cml", "environment": environment}, ready=ready)


def one(findings: list[Finding], reason: str, *says: str) -> Finding:
    """Check that there is one line with a remedy, and a row of docs/why.md for it."""
    [finding] = findings
    assert finding.reason == reason
    assert described(finding.reason)
    assert "→" in finding.line
    for text in says:
        assert text in finding.line
    return finding


def test_missing_rights_name_the_role_and_the_command() -> None:
    missing = [
        CheckedRight("list", "", "pods", "friday"),
        CheckedRight("watch", "", "pods", "friday"),
        CheckedRight("get", "vkprovider.io", "lablets/login", "friday"),
    ]
    said = classroom.check_rights("vkprovider-instructor", missing, GRANT)
    one(said, "InstructorRightsMissing", "list, watch pods in friday; get lablets.vkprovider.io/login in friday", GRANT)
    assert classroom.check_rights("vkprovider-instructor", [], GRANT) == []


def test_definitions_of_a_class_are_its_own_and_those_that_it_runs() -> None:
    mine, admins, run, others = (
        definition(),
        definition("a", owner=""),
        definition("run", owner=""),
        definition("o", owner="x"),
    )
    found = classroom.of_class([mine, admins, run, others], "friday", {"run", ""})
    assert [each.metadata.name for each in found] == ["netlab", "run"]


@pytest.mark.parametrize(
    ("workers", "says"),
    [
        ([], "no worker of its environment default is Ready, for there is none"),
        ([worker(environment="exam")], "no worker of its environment default is Ready, for there is none"),
        ([worker("w1", ready=False), worker("w2", ready=False)], "is Ready: w1 (Unreachable); w2 (Unreachable)"),
    ],
)
def test_a_definition_without_a_worker(workers: list[CustomResource], says: str) -> None:
    finding = one(classroom.check_workers(definition(), workers), "NoWorkerReady", says)
    assert (finding.object, finding.level) == ("LabletDefinition/netlab", Level.FAULT)


def test_one_ready_worker_is_enough() -> None:
    assert classroom.check_workers(definition(), [worker("w1", ready=False), worker("w2")]) == []


def test_a_quota_that_is_used_up_is_a_note() -> None:
    status = {
        "hard": {"requests.cpu": "4", "requests.vkprovider.io/lab-nodes": "24", "pods": "50", "requests.memory": "1Gi"},
        "used": {
            "requests.cpu": "3500m",
            "requests.vkprovider.io/lab-nodes": "24",
            "pods": "6",
            "requests.memory": "1024Mi",
        },
    }
    quota = msgspec.convert({"metadata": {"name": "labs", "namespace": "friday"}, "status": status}, Quota)
    finding = one(
        classroom.check_quota(quota),
        "QuotaFull",
        "1024Mi of 1Gi requests.memory, 24 of 24 requests.vkprovider.io/lab-nodes are used",
    )
    assert (finding.object, finding.level) == ("ResourceQuota/friday/labs", Level.NOTE)


@pytest.mark.parametrize(
    ("message", "reason", "level", "says"),
    [
        (
            "pods is forbidden: ServiceAccount friday/default may not use LabletDefinition netlab. Ask an admin…",
            "UseMissing",
            Level.FAULT,
            GRANT,
        ),
        ("pods is forbidden: exceeded quota: labs, requested: pods=1", "QuotaFull", Level.NOTE, "one more lablet"),
        ('pods is forbidden: violates PodSecurity "restricted"', "FailedCreate", Level.FAULT, "securityContext"),
    ],
)
def test_why_a_lablet_would_be_refused(message: str, reason: str, level: Level, says: str) -> None:
    finding = classroom.check_refusal("netlab", "friday", message, GRANT)
    one([finding], reason, says)
    assert finding.level is level
