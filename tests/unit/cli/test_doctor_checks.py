"""Checks of the doctor that a healthy sandbox never needs, as functions of what was read."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

import vkprovider
from vkprovider.cli.checkup import setup
from vkprovider.doctor import findings
from vkprovider.doctor.findings import DoctorReport, Level, fault, note, once, unchecked
from vkprovider.doctor.rights import CheckedRight, rights_of
from vkprovider.lablet.models.crd import crds
from vkprovider.lablet.reasons import WorkerReason
from vkprovider.labs.checks import lablets, workers
from vkprovider.labs.checks.lablets import SeenPod
from vkprovider.platform.errors import DeadlineExceeded, Unauthorized, Unavailable
from vkprovider.platform.messages import Fault
from vkprovider.platform.objects import CustomResource, Lease, Node, RuntimeClass
from vkprovider.platform.reasons import reason_of
from vkprovider.platform.shipped import find_manifests

MANIFEST = (Path(vkprovider.__file__).parents[1] / "manifests" / "base" / "rbac.yaml").read_text()
NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


# ------------------------------------------------------------------------------------------------ the report


@pytest.mark.parametrize(
    ("findings", "code"),
    [
        ((), 0),
        ((note("a", reason_of("B"), "c"),), 0),
        ((unchecked("a", reason_of("B"), "c"), note("a", reason_of("B"), "c")), 2),
        ((unchecked("a", reason_of("B"), "c"), fault("a", reason_of("B"), "c", "d")), 1),
    ],
)
def test_exit_code(findings: tuple[Any, ...], code: int) -> None:
    assert DoctorReport("c", "s", "v", findings=findings).exit_code == code


def test_line_is_one_line_with_object_reason_and_remedy() -> None:
    assert fault("Pod/a/b", reason_of("Bad"), "it is\nbad.", "Mend it.").line == "Pod/a/b: Bad: it is bad. → Mend it."
    assert note("Pod/a/b", reason_of("Bad"), "it is bad").line == "(note) Pod/a/b: Bad: it is bad"


def test_one_fault_seen_twice_is_one() -> None:
    assert (
        len(
            once(
                [
                    fault("a", reason_of("B"), "c", ""),
                    fault("a", reason_of("B"), "d", ""),
                    fault("b", reason_of("B"), "c", ""),
                ]
            )
        )
        == 2
    )


# ------------------------------------------------------------------------------------------------ the installation


@pytest.mark.parametrize(
    ("version", "reason"),
    [("v1.36.3", ""), ("v1.30.0+k3s1", ""), ("v1.29.9", "UnsupportedKubernetes"), ("weird", "VersionUnknown")],
)
def test_kubernetes_version(version: str, reason: str) -> None:
    assert [f.reason for f in setup.check_version(version)] == ([reason] if reason else [])


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({}, []),
        ({"LDS_API_URL": "https://lds.example.com", "S3_ENDPOINT": "http://localhost:9000"}, []),
        ({"LDS_API_URL": "http://127.0.0.1:8081", "VKPROVIDER_GRADER_URL": "http://[::1]:1"}, []),
        ({"LDS_API_URL": "HTTP://lds.example.com", "LEADER_LEASE_TTL": "15"}, ["LDS_API_URL"]),
        (
            {"VKPROVIDER_GRADER_URL": "http://grader", "S3_ENDPOINT": "http://minio.minio.svc:9000"},
            ["VKPROVIDER_GRADER_URL", "S3_ENDPOINT"],
        ),
        ({"S3_ENDPOINT": "http://[broken"}, []),
    ],
)
def test_services_in_plain_text(settings: dict[str, str], named: list[str]) -> None:
    found = setup.check_transport("ns", settings)
    assert [(f.level, f.object, f.reason) for f in found] == (
        [(Level.NOTE, "ConfigMap/ns/vkprovider-settings", "TransportInsecure")] if named else []
    )
    assert [word for f in found for word in f.message.split() if word.isupper()] == named


def test_custom_resource_definitions() -> None:
    wanted = crds()[0]
    installed = {**wanted, "spec": {**wanted["spec"], "conversion": {"strategy": "None"}}}
    established = {"conditions": [{"type": "Established", "status": "True"}]}
    assert setup.check_crd(wanted, {**installed, "status": established}) == []
    assert [f.reason for f in setup.check_crd(wanted, None)] == ["CrdMissing"]
    assert [f.reason for f in setup.check_crd(wanted, installed)] == ["CrdNotEstablished"]
    older = {**installed, "spec": {**installed["spec"], "names": {**installed["spec"]["names"], "shortNames": ["w"]}}}
    [finding] = setup.check_crd(wanted, older)
    assert finding.message.startswith("spec.names.shortNames[0] differs from this version")


def test_rights_are_those_of_the_manifest() -> None:
    rights = rights_of(MANIFEST, "elsewhere")
    assert CheckedRight("patch", "", "nodes/status") in rights
    assert CheckedRight("get", "", "secrets", "elsewhere-logins") in rights
    assert CheckedRight("update", "coordination.k8s.io", "leases", "kube-node-lease") in rights
    assert CheckedRight("get", "", "namespaces") in rights
    assert not [r for r in rights if r.resource == "configmaps" and not r.namespace], "the reader role is not bound"
    assert CheckedRight("patch", "a.b", "c/status", "n").attributes() == {
        "resourceAttributes": {
            "verb": "patch",
            "group": "a.b",
            "resource": "c",
            "subresource": "status",
            "namespace": "n",
        }
    }


def test_missing_rights_are_one_finding_which_is_shown_whole() -> None:
    missing = [
        CheckedRight("get", "", "nodes"),
        CheckedRight("list", "", "nodes"),
        CheckedRight("get", "", "secrets", "n-logins"),
    ]
    [found] = once(setup.check_rights("n/a", missing))
    assert found.message == "may not get, list nodes; get secrets in n-logins"
    many = [CheckedRight("get", "", f"kind-{number}") for number in range(7)]
    assert setup.check_rights("n/a", many)[0].message.endswith("; get kind-4; and 2 more")
    assert setup.check_rights("n/a", []) == []


def test_the_right_that_may_be_taken_away_is_not_missed() -> None:
    """As rbac.yaml says of it."""
    shipped = rights_of((find_manifests() / "base" / "rbac.yaml").read_text(), "n")
    creates = CheckedRight("create", "vkprovider.io", "cmlworkers")
    assert setup.needed_rights(shipped, {}) == shipped
    assert setup.needed_rights(shipped, {"VKPROVIDER_TUNNEL_REGISTER": "approve"}) == shipped
    left = setup.needed_rights(shipped, {"VKPROVIDER_TUNNEL_REGISTER": "deny"})
    assert set(shipped) - set(left) == {creates}


def test_owner() -> None:
    lease = msgspec.convert({"metadata": {"name": "l"}, "spec": {"holderIdentity": "r1"}}, Lease)
    assert setup.check_owner("w", lease, {"r1"}) == []
    assert setup.check_owner("w", lease, set()) == [], "reported as NoReplica"
    [dead] = setup.check_owner("w", lease, {"r2"})
    assert "replica r1, which owns it, does not live" in dead.message
    [orphan] = setup.check_owner("w", None, {"r2"})
    assert orphan.message == "no replica owns it"


def heartbeat(renewed: str) -> Lease:
    spec = {"holderIdentity": "r1", "leaseDurationSeconds": 40, "renewTime": renewed}
    return msgspec.convert({"metadata": {"name": "vnode.w", "namespace": "kube-node-lease"}, "spec": spec}, Lease)


def test_node_lease_that_is_not_renewed() -> None:
    now = NOW.timestamp()
    assert setup.check_heartbeat(heartbeat("2026-01-31T11:59:20.000000Z"), {"r1"}, now) == []
    [finding] = setup.check_heartbeat(heartbeat("2026-01-31T11:59:00.000000Z"), {"r1"}, now)
    assert (finding.object, finding.reason) == ("Lease/kube-node-lease/vnode.w", "LeaseExpired")
    assert finding.message == "not renewed for 60 s, its duration is 40 s: the Node turns NotReady"
    assert "replica r1" in finding.remedy
    assert setup.check_heartbeat(heartbeat("2026-01-31T11:59:00.000000Z"), set(), now) == [], "reported as NoReplica"
    assert setup.check_heartbeat(None, {"r1"}, now) == []


@pytest.mark.parametrize(("ahead_s", "found"), [(0.0, False), (-4.9, False), (5.0, True), (-3600.0, True)])
def test_clocks(ahead_s: float, found: bool) -> None:  # noqa: FBT001 (a column of the table)
    shown = findings.check_clock("Cluster", "the API server", ahead_s)
    assert [(f.level, f.reason) for f in shown] == ([(Level.NOTE, "ClockSkew")] if found else [])


@pytest.mark.parametrize(
    ("said", "found"),
    [("", []), ("7200", ["7200 s ahead of the API server's"]), ("-45", ["45 s behind the API server's"])],
)
def test_a_replica_whose_clock_is_off_says_so_on_its_lease(said: str, found: list[str]) -> None:
    notes = {"vkprovider.io/clock-skew": said} if said else {}
    leases = [skewed("vkprovider-portal-replica-p1", notes), skewed("vkprovider-replica-v1", notes)]
    findings = setup.sort([each for lease in leases for each in setup.check_skew(lease)])
    assert [f.reason for f in findings] == ["ClockSkew"] * 2 * len(found), "one machine does not hide the other"
    for finding, lease in zip(findings, leases if found else [], strict=True):
        assert finding.object == f"Lease/vkp/{lease.metadata.name}"
        assert f"of {lease.metadata.name} is {found[0]}" in finding.message


def skewed(name: str, notes: dict[str, str]) -> Lease:
    return msgspec.convert({"metadata": {"name": name, "namespace": "vkp", "annotations": notes}}, Lease)


def test_what_is_not_installed_is_installed_as_a_whole() -> None:
    """The first remedy that a newcomer follows brings the Deployment and the policies, too."""
    found = [setup.check_crd(wanted, None)[0] for wanted in crds()]
    found += setup.check_namespace("n", exists=False, account=False)
    found += setup.check_namespace("n", exists=True, account=False)
    assert len(found) == len(crds()) + 2
    for finding in found:
        assert finding.remedy.startswith("kubectl apply -k manifests/overlays/default, or the overlay")
        assert "server-side" not in finding.remedy


def test_settings_that_nobody_reads_are_a_note_with_the_nearest_name() -> None:
    [finding] = setup.check_settings("n", {"WORKER_PROBE_SECOND": "WORKER_PROBE_SECONDS"})
    assert (finding.level, finding.object, finding.reason) == (
        Level.NOTE,
        "ConfigMap/n/vkprovider-settings",
        "SettingUnknown",
    )
    assert "WORKER_PROBE_SECOND has no effect; do you mean WORKER_PROBE_SECONDS?" in finding.message


# ------------------------------------------------------------------------------------------------ workers


def seen(
    *,
    ready: bool = True,
    because: str = "R",
    probe: workers.WorkerProbe | None = None,
    exists: bool = True,
    forbidden: str = "",
    unusable: Fault | None = None,
    node: dict[str, Any] | None = None,
    lives: bool = True,
    **spec: Any,
) -> workers.SeenWorker:
    """See a good worker, but for what is given."""
    condition = {"type": "Ready", "status": "True" if ready else "False", "reason": because, "message": "m"}
    resource = {
        "metadata": {"name": "w", "generation": 1},
        "spec": {
            "url": "https://w",
            "address": "198.51.100.1",
            "credentialsSecretName": "s",
            "portRange": {"start": 2000, "end": 7999},
            "capacity": {"labNodes": 20},
            **spec,
        },
        "status": {"conditions": [condition], "observedGeneration": 1},
    }
    good = {
        "metadata": {"name": "vnode.w", "annotations": {"vkprovider.io/installation": "i"}},
        "status": {"addresses": [{"type": "ExternalIP", "address": "198.51.100.1"}]},
    }
    return workers.SeenWorker(
        custom(resource),
        msgspec.convert(node or good, Node),
        workers.SecretState(exists, forbidden, unusable),
        probe or workers.WorkerProbe("2.9.1"),
        lives,
    )


def custom(resource: dict[str, Any]) -> CustomResource:
    return msgspec.json.decode(msgspec.json.encode(resource), type=CustomResource)


def check(what: workers.SeenWorker) -> list[tuple[str, str]]:
    found = workers.check_worker(what, logins="n-logins", before="n", installation="i")
    return [(str(finding.level), finding.reason) for finding in found]


def test_one_controller_registered_twice_is_noticed() -> None:
    urls = {"a": "https://w", "b": "https://other", "c": "https://W/"}
    resources = [custom({"metadata": {"name": n}, "spec": {"url": u}}) for n, u in urls.items()]
    [finding] = workers.check_urls(resources)
    assert (finding.level, finding.object) == (Level.NOTE, "CMLWorker/a")
    assert finding.message == "it has the same url as c: the scheduler counts its capacity 2 times"


def test_good_worker() -> None:
    assert check(seen()) == []


def test_worker_that_only_the_provider_reaches_is_no_fault() -> None:
    away = workers.WorkerProbe(error=DeadlineExceeded("no answer"))
    assert check(seen(probe=away)) == [("note", "UnreachableFromHere")]
    assert check(seen(probe=away, lives=False)) == [("fault", "WorkerUnreachable")]


def test_worker_whose_node_is_not_ready_is_one_fault() -> None:
    silent = {
        "metadata": {"name": "vnode.w", "annotations": {"vkprovider.io/installation": "i"}},
        "status": {
            "addresses": [{"type": "ExternalIP", "address": "198.51.100.1"}],
            "conditions": [{"type": "Ready", "status": "False", "reason": "WorkerUnreachable", "message": "m"}],
        },
    }
    away = workers.WorkerProbe(error=DeadlineExceeded("no answer"))
    assert check(seen(probe=away, node=silent)) == [("fault", "WorkerUnreachable")]


def test_worker_of_an_agent_that_nobody_has_approved_is_to_be_approved_not_uncordoned() -> None:
    node = {
        "metadata": {"name": "vnode.w", "annotations": {"vkprovider.io/installation": "i"}},
        "spec": {"unschedulable": True},
        "status": {"addresses": [{"type": "ExternalIP", "address": "198.51.100.1"}]},
    }
    waits = seen(node=node, ready=False, because="AwaitingApproval", tunnel="mqtt", credentialsSecretName=None)
    waits.resource.metadata.annotations["vkprovider.io/approved"] = "false"
    [finding] = workers.check_worker(waits, logins="n-logins", before="n", installation="i")
    assert finding.reason == "AwaitingApproval"
    assert "`kubectl lablet approve w`" in finding.remedy
    [cordoned] = workers.check_worker(seen(node=node), logins="n-logins", before="n", installation="i")
    assert (cordoned.reason, cordoned.remedy) == ("Cordoned", "kubectl uncordon vnode.w")


def test_worker_that_refuses_the_login_from_here_is_a_fault() -> None:
    assert check(seen(probe=workers.WorkerProbe("2.9.1", Unauthorized("no")))) == [("fault", "CredentialsInvalid")]


def test_secret_that_cannot_be_used_is_one_fault() -> None:
    assert check(seen(exists=False)) == [("fault", "CredentialsInvalid")]
    unusable = Fault(WorkerReason.CREDENTIALS_INVALID, "password ends with a line break")
    assert check(seen(unusable=unusable)) == [("fault", "CredentialsInvalid")]
    refused = Fault(WorkerReason.SECRET_NOT_ALLOWED, "not for this host")
    assert check(seen(unusable=refused)) == [("fault", "SecretNotAllowed")]


def licensed(registration: str, authorization: str, *, reserved: bool = False, quota: int = 20) -> workers.SeenWorker:
    return seen(
        probe=workers.WorkerProbe("2.9.1", licence=workers.Licence(registration, authorization, reserved, quota))
    )


def test_licence() -> None:
    assert check(licensed("COMPLETED", "IN_COMPLIANCE")) == []
    assert check(licensed("NOT_REGISTERED", "INIT")) == [("fault", "LicenceInvalid")]
    assert check(licensed("COMPLETED", "OUT_OF_COMPLIANCE")) == [("fault", "LicenceInvalid")]
    assert check(licensed("NOT_REGISTERED", "INIT", reserved=True)) == []
    assert check(licensed("COMPLETED", "IN_COMPLIANCE", quota=19)) == [("note", "LicencesFew")]


@pytest.mark.parametrize("capacity", [{"labNodes": 20, "cpu": "0"}, {"labNodes": 20, "memory": 256}, {"labNodes": 0}])
def test_capacity_in_which_nothing_fits_is_a_fault(capacity: dict[str, Any]) -> None:
    assert check(seen(capacity=capacity)) == [("fault", "CapacityTooSmall")]


def test_user_without_rights_is_a_note() -> None:
    assert check(seen(probe=workers.WorkerProbe("2.9.1", admin=False))) == [("note", "NotAdministrator")]
    assert check(seen(probe=workers.WorkerProbe("2.9.1", admin=True))) == []


def test_worker_with_another_clock_is_a_note() -> None:
    assert check(seen(probe=workers.WorkerProbe("2.9.1", skew_s=-90.0))) == [("note", "ClockSkew")]


def test_ports_that_the_worker_does_not_open_by_default_are_a_note() -> None:
    assert check(seen(portRange={"start": 10000, "end": 20000})) == [("note", "PortsNotOpened")]
    assert check(seen(portRange={"start": 2000, "end": 8000})) == [("note", "PortsNotOpened")]
    assert check(seen(portRange={"start": 3000, "end": 3100})) == []
    assert check(seen(portRange=None)) == [("note", "PortsNotOpened")], "the provider's own default"


def test_unsupported_version_is_found_without_the_provider() -> None:
    assert check(seen(probe=workers.WorkerProbe("2.4.0"))) == [("fault", "UnsupportedVersion")]


def test_secret_that_may_not_be_read_is_no_fault() -> None:
    assert check(seen(exists=False, forbidden="no")) == [("unchecked", "SecretForbidden")]


def test_login_that_works_until_it_ends_is_a_fault_also_where_the_secret_may_not_be_read() -> None:
    found = check(seen(because="CredentialsInvalid", exists=False, forbidden="no"))
    assert found == [("fault", "CredentialsInvalid"), ("unchecked", "SecretForbidden")]


def test_condition_and_probe_that_agree_are_one_line() -> None:
    broken = seen(ready=False, probe=workers.WorkerProbe(error=Unavailable("away", status=502)))
    assert check(broken) == [("fault", "R"), ("fault", "WorkerUnreachable")]


def test_node_of_another_installation() -> None:
    assert check(seen(node={"metadata": {"name": "vnode.w"}})) == [("fault", "NodeConflict")]


def test_address_that_the_provider_cannot_resolve() -> None:
    own = {"metadata": {"name": "vnode.w", "annotations": {"vkprovider.io/installation": "i"}}}
    assert check(seen(node=own)) == [("fault", "AddressUnresolved")]


# ------------------------------------------------------------------------------------------------ pods


def pod(name: str = "a", *, owner: str = "", node: str = "vnode.w", **status: Any) -> SeenPod:
    metadata: dict[str, Any] = {"name": name, "namespace": "n", "creationTimestamp": "2026-01-31T11:59:00Z"}
    if owner:
        metadata["ownerReferences"] = [{"uid": owner, "controller": True}]
    spec = {"containers": [{"name": "lab"}], "nodeName": node, "runtimeClassName": "x"}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": {"phase": "Pending", **status}}, SeenPod)


def waiting(reason: str, message: str = "m") -> list[dict[str, Any]]:
    return [{"name": "lab", "state": {"waiting": {"reason": reason, "message": message}}}]


def test_pods_on_their_way_are_no_fault() -> None:
    for reason in ("StartingNodes", "ImportingLab", "ContainerCreating"):
        assert lablets.check_pods([pod(containerStatuses=waiting(reason))], NOW) == []


def test_pods_on_their_way_for_ever_are_a_fault() -> None:
    old = pod(containerStatuses=waiting("StartingNodes"), startTime="2026-01-31T11:00:00Z")
    [finding] = lablets.check_pods([old], NOW)
    assert (finding.reason, finding.message) == ("Stuck", "StartingNodes for 60 min: m")


def test_pods_whose_devices_may_boot_for_long_are_not_stuck() -> None:
    old = pod(containerStatuses=waiting("StartingNodes"), startTime="2026-01-31T11:20:00Z")
    assert lablets.check_pods([old], NOW, boot_s={"x": 1800}) == []
    [finding] = lablets.check_pods([old], NOW, boot_s={"x": 1200})
    assert finding.reason == "Stuck"
    imports = pod(containerStatuses=waiting("ImportingLab"), startTime="2026-01-31T11:20:00Z")
    assert [found.reason for found in lablets.check_pods([imports], NOW, boot_s={"x": 1800})] == ["Stuck"]


def unready(reason: str, since: str) -> SeenPod:
    """A Pod that has run for hours, and is not Ready since a while."""
    return pod(
        phase="Running",
        startTime="2026-01-31T09:00:00Z",
        containerStatuses=waiting(reason),
        conditions=[{"type": "Ready", "status": "False", "lastTransitionTime": since}],
    )


@pytest.mark.parametrize("reason", ["Recovering", "Resetting", "CleaningUp", "StartingNodes"])
def test_pods_that_ran_for_long_have_their_patience_anew(reason: str) -> None:
    assert lablets.check_pods([unready(reason, "2026-01-31T11:59:55Z")], NOW) == []
    [finding] = lablets.check_pods([unready(reason, "2026-01-31T11:30:00Z")], NOW)
    assert (finding.reason, finding.message) == ("Stuck", f"{reason} for 30 min: m")


def test_lablet_that_is_stopped_on_request_is_a_note() -> None:
    [finding] = lablets.check_pods([unready("LabStopped", "2026-01-31T09:30:00Z")], NOW)
    assert (finding.level, finding.reason, finding.message) == (Level.NOTE, "LabStopped", "m")
    assert "kubectl lablet start" in finding.remedy


def test_pods_of_one_owner_are_one_line() -> None:
    pods = [pod(f"p{n}", owner="o", containerStatuses=waiting("OutOfcpu")) for n in range(3)]
    pods.append(pod("q", owner="other", containerStatuses=waiting("OutOfcpu")))
    found = lablets.check_pods(pods, NOW)
    assert [(f.object, f.message) for f in found] == [("Pod/n/p0", "m (and 2 more like it)"), ("Pod/n/q", "m")]
    assert all(f.remedy.startswith("Do not set spec.nodeName") for f in found)


def test_unschedulable_lablet() -> None:
    conditions = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}]
    [finding] = lablets.check_pods([pod(node="", conditions=conditions)], NOW)
    assert (finding.reason, finding.message, finding.level) == ("Unschedulable", "0/3 nodes", Level.FAULT)
    assert finding.remedy.startswith("Add workers of its environment")


def test_failed_pod_is_a_note() -> None:
    ended = [{"name": "lab", "state": {"terminated": {"reason": "LabCrashed", "message": "it crashed"}}}]
    [finding] = lablets.check_pods([pod(phase="Failed", reason="LabCrashed", containerStatuses=ended)], NOW)
    assert (finding.level, finding.reason, finding.message) == (Level.NOTE, "LabCrashed", "it crashed")


def test_ready_and_succeeded_pods_are_fine() -> None:
    running = [{"name": "lab", "state": {"running": {}}}]
    ready = pod(phase="Running", containerStatuses=running, conditions=[{"type": "Ready", "status": "True"}])
    assert lablets.check_pods([ready, pod(phase="Succeeded")], NOW) == []


# ------------------------------------------------------------------------------------------------ definitions


def test_refused_refresh_of_a_ready_definition_is_a_fault() -> None:
    conditions = [
        {"type": "Ready", "status": "True"},
        {"type": "Refreshed", "status": "False", "reason": "PackageInvalid", "message": "it is not a zip"},
    ]
    meta = {"name": "netlab", "uid": "u", "generation": 1}
    spec = {"source": {"objectStore": {"key": "netlab.zip"}}}
    status = {"conditions": conditions, "observedGeneration": 1}
    raw = {"metadata": meta, "spec": spec, "status": status}
    definition = msgspec.convert(raw, CustomResource)
    owned = msgspec.convert({"metadata": {"name": "netlab", "ownerReferences": [{"uid": "u"}]}}, RuntimeClass)
    [found] = lablets.check_definition(definition, owned)
    assert (found.object, found.reason) == ("LabletDefinition/netlab", "PackageInvalid")
    assert found.message == "the last refresh changed nothing: it is not a zip"
    assert "kubectl lablet refresh netlab" in found.remedy
    conditions[1]["status"] = "True"
    assert lablets.check_definition(msgspec.convert(raw, CustomResource), owned) == []


def test_impeded_definition_is_a_fault() -> None:
    impeded = {"type": "Impeded", "status": "True", "reason": "TooLarge", "message": "cpu 2000 > 64"}
    status = {"conditions": [{"type": "Ready", "status": "True"}, impeded], "observedGeneration": 1}
    spec = {"version": "1", "source": {"inline": "lab: {}"}}
    raw = {"metadata": {"name": "netlab", "uid": "u", "generation": 1}, "spec": spec, "status": status}
    owned = msgspec.convert({"metadata": {"name": "netlab", "ownerReferences": [{"uid": "u"}]}}, RuntimeClass)
    [found] = lablets.check_definition(msgspec.convert(raw, CustomResource), owned)
    assert (found.level, found.reason, found.message) == ("fault", "TooLarge", "cpu 2000 > 64")
    assert "spec.capacity" in found.remedy


def test_replicas_of_different_versions_are_noted() -> None:
    assert setup.check_versions("system", {}) == []
    assert setup.check_versions("system", {"a": "1.2.0", "b": "1.2.0"}) == []
    [finding] = setup.check_versions("system", {"b": "1.2.0", "a": "1.3.0", "c": ""})
    assert (finding.object, finding.reason, finding.level) == ("Namespace/system", "VersionsDiffer", "note")
    assert finding.message.endswith(": a is 1.3.0; b is 1.2.0; c is older")
    assert finding.remedy.endswith("kubectl -n system rollout status deployment/vkprovider")
