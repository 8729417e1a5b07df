"""What the doctor says of Pods that cannot become lablets, and of what cannot make them."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from vkprovider.cli.checkup.workloads import PodRefusal, Workload, check_deadlines, check_workloads
from vkprovider.doctor.findings import DoctorReport, Finding, Level, fault, named, text_of, unchecked
from vkprovider.lablet.reasons import Happened
from vkprovider.labs.checks import lablets
from vkprovider.labs.checks.lablets import SeenPod
from vkprovider.platform.objects import Node
from vkprovider.platform.reasons import StartReason, reason_of
from vkprovider.portal.checks.offer import check_wait

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
UNBOUND = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}]
REFUSED = 'pods "warm-x" is forbidden: exceeded quota: team, requested: requests.cpu=2'


def pod(*, cpu: str = "1m", image: str = "netlab:1.0", definition: str = "netlab", **more: Any) -> SeenPod:
    container = {"name": "lab", "image": image, "resources": {"requests": {"cpu": cpu, "memory": "1Mi"}}}
    spec = {"containers": [container], "runtimeClassName": definition, "overhead": {"cpu": "2"}}
    meta = {"name": "a", "namespace": "n", "annotations": more.pop("annotations", {})}
    status = {"phase": "Pending", "conditions": UNBOUND, **more.pop("status", {})}
    return msgspec.convert({"metadata": meta, "spec": spec | more, "status": status}, SeenPod)


def node(cpu: str) -> Node:
    return msgspec.convert(
        {"metadata": {"name": "vnode.w"}, "status": {"capacity": {"cpu": cpu, "memory": "1Gi"}}}, Node
    )


def checked(pod: SeenPod, *nodes: Node) -> list[Finding]:
    assert lablets.is_relevant(pod, {"netlab"})
    return lablets.check_pods([pod], NOW, {"netlab"}, nodes)


def test_pod_that_no_worker_can_ever_hold() -> None:
    [finding] = checked(pod(cpu="100"), node("64"), node("32"))
    assert finding.reason == "TooLarge"
    assert finding.message == "no worker is large enough, whatever else runs: it needs cpu 102 > 64"
    assert "wait" not in finding.remedy.lower()


@pytest.mark.parametrize("nodes", [[], [node("64")], [node("much")]], ids=["unknown", "large enough", "unreadable"])
def test_pod_that_may_fit_later(nodes: list[Node]) -> None:
    [finding] = checked(pod(cpu="60"), *nodes)
    assert finding.reason == "Unschedulable"


def test_pod_that_no_node_takes_names_its_environment() -> None:
    selector = {"vkprovider.io/env": "exam", "vkprovider.io/component": "vnode"}
    [finding] = checked(pod(cpu="60", nodeSelector=selector), node("64"))
    assert "environment exam" in finding.message
    assert "spec.environment: exam" in finding.remedy


@pytest.mark.parametrize(("at", "said"), [("2026-01-31T11:58:30Z", ["NotReported"]), ("2026-01-31T11:59:30Z", [])])
def test_pod_of_which_nothing_is_reported(at: str, said: list[str]) -> None:
    """As when the provider runs as an administrator, whose reports the policies refuse."""
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": at}
    findings = checked(pod(nodeName="vnode.w", status={"conditions": [scheduled]}), node("64"))
    assert [finding.reason for finding in findings] == said
    assert {finding.message for finding in findings} <= {"the provider has reported nothing on it for 90 seconds"}


@pytest.mark.parametrize(
    ("ended", "ready", "said"),
    [
        ("2026-01-31T11:59:30Z", "Unknown", ["WaitsForWorker"]),
        ("2026-01-31T11:59:30Z", "True", []),
        ("2026-01-31T11:59:50Z", "Unknown", []),
    ],
    ids=["worker is down", "worker is up", "just deleted"],
)
def test_pod_that_stays_terminating(ended: str, ready: str, said: list[str]) -> None:
    """The deletion timestamp is the end of the grace period."""
    states = [{"type": "Ready", "status": ready, "reason": "WorkerUnreachable"}]
    worker = msgspec.convert({"metadata": {"name": "vnode.w"}, "status": {"conditions": states}}, Node)
    leaving = msgspec.to_builtins(pod(nodeName="vnode.w", status={"phase": "Running"}))
    leaving["metadata"]["deletionTimestamp"] = ended
    findings = checked(msgspec.convert(leaving, SeenPod), worker)
    assert [finding.reason for finding in findings] == said
    text = "it is being deleted and waits for worker w to remove its lab: WorkerUnreachable"
    assert {finding.message for finding in findings} <= {text}
    assert all("connect-cml.md" in finding.line for finding in findings)


def test_pod_whose_readiness_gate_is_closed() -> None:
    """Its lab is as it should be: whoever writes the gate's condition has to act, and no time makes it worse."""
    text = 'corresponding condition of pod readiness gate "example.com/lb" does not exist.'
    ready = {"type": "Ready", "status": "False", "reason": "ReadinessGatesNotReady", "message": text}
    ready["lastTransitionTime"] = "2026-01-30T11:59:30Z"
    states = [{"name": "lab", "ready": True, "state": {"running": {}}}]
    status = {"phase": "Running", "conditions": [ready], "containerStatuses": states}
    [finding] = checked(pod(nodeName="vnode.w", status=status), node("64"))
    assert (finding.level, finding.reason, finding.message) == (Level.NOTE, "ReadinessGatesNotReady", text)
    assert finding.remedy == Happened.READINESS_GATES_NOT_READY.remedy


@pytest.mark.parametrize(("ready", "level"), [("True", Level.NOTE), ("False", Level.FAULT)])
def test_pods_of_a_daemonset_that_tolerates_everything(ready: str, level: Level) -> None:
    """Those that an earlier version gave an address hold up the updates of the ordinary nodes."""
    states = [{"name": "main", "state": {"waiting": {"reason": "NotALablet", "message": "nothing runs"}}}]
    status = {"conditions": [{"type": "Ready", "status": ready, "reason": "NotALablet"}], "containerStatuses": states}
    found = []
    for number in (1, 2, 3):
        raw = msgspec.to_builtins(pod(definition="", image="cni:1", nodeName=f"vnode.w{number}", status=status))
        raw["metadata"] |= {"name": f"net-{number}", "namespace": "kube-system"}
        raw["metadata"]["ownerReferences"] = [{"uid": "u", "kind": "DaemonSet", "name": "net", "controller": True}]
        found.append(msgspec.convert(raw, SeenPod))
    [finding] = lablets.check_pods(found, NOW)
    assert (finding.level, finding.reason) == (level, "NotALablet")
    assert "DaemonSet net" in finding.message
    assert finding.message.endswith("(and 2 more like it)")
    assert ("wait" in finding.message) is (level is Level.FAULT)
    assert "kubectl -n kube-system patch daemonset net " in finding.remedy
    assert '{"kubernetes.io/os":"linux"}' in finding.remedy


def test_pod_whose_image_is_a_definition_but_that_is_not_a_lablet() -> None:
    [finding] = checked(pod(definition=""))
    assert (finding.level, finding.reason) == (Level.FAULT, "NotALablet")
    assert finding.line.endswith("→ Set spec.runtimeClassName: netlab")


def test_pod_that_runs_an_image_of_that_name_is_none_of_ours() -> None:
    assert not lablets.is_relevant(pod(definition="", status={"phase": "Running"}), {"netlab"})
    assert not lablets.is_relevant(pod(definition="", image="nginx"), {"netlab"})


def test_annotation_that_cannot_be_read() -> None:
    running = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    notes = {"vkprovider.io/timeslot-end": "tomorrow", "vkprovider.io/user": "zoe"}
    [finding] = checked(pod(annotations=notes, nodeName="vnode.w", status=running))
    assert (finding.level, finding.reason) == (Level.FAULT, "AnnotationInvalid")
    assert "do you mean vkprovider.io/username?" in finding.message
    assert "timeslot-end 'tomorrow' is not a time" in finding.message


# ------------------------------------------------------------------------------------------------ what makes Pods


def workload(definition: str = "netlab", *, owner: str = "", **more: Any) -> Workload:
    owners = [{"kind": "Deployment", "name": owner, "uid": "u", "controller": True}] if owner else []
    meta = {"name": "warm-1", "namespace": "n", "ownerReferences": owners}
    spec = {"template": {"spec": {"runtimeClassName": definition}}, **more.pop("spec", {})}
    return msgspec.convert({"metadata": meta, "spec": spec, "status": more}, Workload)


def refusal(kind: str, message: str = REFUSED, name: str = "warm-1", last: str | None = None) -> PodRefusal:
    about = {"kind": kind, "namespace": "n", "name": name}
    return msgspec.convert({"involvedObject": about, "message": message, "lastTimestamp": last}, PodRefusal)


FAILURE = [{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": REFUSED}]


def test_deployment_whose_pods_a_quota_refuses() -> None:
    item = workload(owner="warm", conditions=FAILURE, replicas=3, spec={"replicas": 5})
    [finding] = check_workloads({"ReplicaSet": [item]}, [], {"netlab"})
    assert (finding.object, finding.reason) == ("Deployment/n/warm", "FailedCreate")
    assert REFUSED in finding.message
    assert "raise the quota" in finding.remedy


def test_newest_event_counts_more_than_the_condition_that_is_never_renewed() -> None:
    """The controller writes ReplicaFailure once, and leaves it whatever the later Pods are refused for."""
    first = 'pods "warm-1-x" is forbidden: pod rejected: RuntimeClass "netlab" not found'
    stale = [{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": first}]
    item = workload(owner="warm", conditions=stale, replicas=3, spec={"replicas": 5})
    older = refusal("ReplicaSet", first, last="2026-01-31T11:00:00Z")
    newer = refusal("ReplicaSet", REFUSED, last="2026-01-31T11:05:00Z")
    for events in ([older, newer], [newer, older]):
        [finding] = check_workloads({"ReplicaSet": [item]}, events, {"netlab"})
        assert REFUSED in finding.message
        assert "raise the quota" in finding.remedy
    [finding] = check_workloads({"ReplicaSet": [item]}, [], {"netlab"})
    assert "not found" in finding.message


def test_pool_whose_definition_is_misspelt() -> None:
    """There is no definition of that name, by which it would be known as one that makes lablets."""
    says = 'pods "warm-1-x" is forbidden: pod rejected: RuntimeClass "netlb" not found'
    failure = [{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": says}]
    item = workload("netlb", owner="warm", conditions=failure, spec={"replicas": 5})
    [finding] = check_workloads({"ReplicaSet": [item]}, [], {"netlab"})
    assert (finding.object, finding.reason) == ("Deployment/n/warm", "FailedCreate")
    assert finding.remedy.startswith("Correct runtimeClassName")


@pytest.mark.parametrize("kind", ["StatefulSet", "Job"])
def test_what_has_no_condition_says_it_by_events(kind: str) -> None:
    [finding] = check_workloads({kind: [workload()]}, [refusal(kind)], {"netlab"})
    assert (finding.object, finding.reason) == (f"{kind}/n/warm-1", "FailedCreate")


@pytest.mark.parametrize(
    ("kind", "item"),
    [
        ("ReplicaSet", workload(conditions=FAILURE, replicas=5, spec={"replicas": 5})),
        ("ReplicaSet", workload("another", conditions=FAILURE)),
        ("StatefulSet", workload(replicas=1)),
        ("Job", workload(active=1)),
        ("Job", workload(conditions=[{"type": "Complete", "status": "True"}])),
        ("Job", workload(spec={"suspend": True})),
        ("DaemonSet", workload(desiredNumberScheduled=3)),
        ("DaemonSet", workload()),
        ("DaemonSet", workload("another", desiredNumberScheduled=0)),
    ],
)
def test_what_lacks_no_pod_is_fine(kind: str, item: Workload) -> None:
    """Also where an Event of an earlier hour is still there."""
    assert check_workloads({kind: [item]}, [refusal(kind)], {"netlab"}) == []


def test_daemon_set_that_selects_no_node() -> None:
    [finding] = check_workloads({"DaemonSet": [workload(desiredNumberScheduled=0)]}, [], {"netlab"})
    assert (finding.object, finding.reason) == ("DaemonSet/n/warm-1", "DaemonSetEmpty")
    assert "manifests/examples/daemonset.yaml" in finding.remedy


# ------------------------------------------------------------------------------------------------ lines


def test_remedies_name_their_object() -> None:
    assert named("kubectl lablet reset POD", "Pod/n/a") == "kubectl lablet reset a -n n"
    assert named("kubectl lablet refresh NAME", "LabletDefinition/netlab") == "kubectl lablet refresh netlab"
    assert named("set VKPROVIDER_AGENT_NAME", "CMLWorker/w") == "set VKPROVIDER_AGENT_NAME"
    assert named("kubectl lablet reset POD", "") == "kubectl lablet reset POD"


def test_remedy_that_the_message_has_is_not_repeated() -> None:
    assert fault("A/b", reason_of("R"), "it failed; do that", "Do that.").line == "A/b: R: it failed; do that"


def test_report_without_a_cluster_says_that_nothing_was_checked() -> None:
    report = DoctorReport("?", "", findings=(unchecked("Kubeconfig", StartReason.KUBECONFIG_INVALID, "m"),))
    assert text_of(report).splitlines()[-1] == "nothing was checked"


def test_report_of_a_user_who_may_look_at_little_does_not_begin_with_no_faults() -> None:
    findings = tuple(unchecked(f"a{n}", reason_of("B"), "it may not be read by you") for n in range(12))
    report = DoctorReport("c", "s", "v1.36.3", findings=findings)
    assert text_of(report).splitlines()[-1] == "12 checks could not be made; the others found no faults"


# ------------------------------------------------------------------------------------------------ what waits too short


def deployment(**spec: Any) -> Workload:
    template = {"spec": {"runtimeClassName": "netlab"}}
    return msgspec.convert(
        {"metadata": {"name": "warm", "namespace": "n"}, "spec": {"template": template, **spec}}, Workload
    )


@pytest.mark.parametrize(
    ("spec", "boot_s", "short"),
    [
        ({}, {"netlab": 1800}, True),
        ({}, {"netlab": 600}, False),
        ({"progressDeadlineSeconds": 2400}, {"netlab": 1800}, False),
        ({"progressDeadlineSeconds": 2400}, {"netlab": 2700}, True),
        ({}, {"other": 1800}, False),
    ],
)
def test_deployment_that_does_not_wait_for_its_lablets(
    spec: dict[str, Any],
    boot_s: dict[str, int],
    short: bool,  # noqa: FBT001 (a table)
) -> None:
    found = check_deadlines([deployment(**spec)], boot_s)
    assert [(each.object, each.level, each.reason) for each in found] == (
        [("Deployment/n/warm", Level.NOTE, "WaitTooShort")] if short else []
    )
    assert not short or found[0].remedy == f"Set spec.progressDeadlineSeconds to {boot_s['netlab'] + 600} or more."


@pytest.mark.parametrize(
    ("settings", "boot_s", "said"),
    [
        ({}, {"netlab": 1800}, ""),
        ({}, {}, ""),
        ({}, {"netlab": 1800, "xr": 2700}, "VKPROVIDER_PORTAL_START_TIMEOUT_SECONDS is 2400, but a device of xr may"),
        (
            {"VKPROVIDER_PORTAL_START_TIMEOUT_SECONDS": "600"},
            {"netlab": 1800},
            "is 600, but a device of netlab",
        ),
        ({"VKPROVIDER_PORTAL_START_TIMEOUT_SECONDS": "3300"}, {"xr": 2700}, ""),
        ({"VKPROVIDER_PORTAL_START_TIMEOUT_SECONDS": "soon"}, {"xr": 2700}, ""),
    ],
)
def test_portal_that_does_not_wait_for_its_labs(settings: dict[str, str], boot_s: dict[str, int], said: str) -> None:
    found = check_wait("vkprovider-system", settings, boot_s)
    assert [each.reason for each in found] == (["WaitTooShort"] if said else [])
    assert all((said in each.message and "3300" in each.remedy) or "2400" in each.remedy for each in found)
