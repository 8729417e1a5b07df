"""Who is let into which Pod, and of whom it is said that nobody knows them."""

from typing import Any

import msgspec
import pytest

from vkprovider.classroom.access import binding_for, role_for, stale
from vkprovider.classroom.attendance import Attendance, attendance_in, strangers
from vkprovider.classroom.pods import LabletPod
from vkprovider.platform.objects import RoleBinding

GROUP = "rbac.authorization.k8s.io"


def pod(name: str = "one", uid: str = "1", user: str = "", **notes: str) -> LabletPod:
    annotations = {**({"vkprovider.io/username": user} if user else {}), **notes}
    meta = {"name": name, "namespace": "friday", "uid": uid, "annotations": annotations}
    return msgspec.convert({"metadata": meta, "spec": {"containers": []}}, LabletPod)


def binding(of: LabletPod, prefix: str = "") -> RoleBinding:
    return msgspec.convert(binding_for(of, prefix), RoleBinding)


def test_the_role_names_the_pod_and_the_binding_its_learner() -> None:
    made, bound = role_for(pod(user="alice")), binding_for(pod(user="alice"), "oidc:")
    assert (
        made["metadata"]["name"] == bound["metadata"]["name"] == bound["roleRef"]["name"] == "vkprovider-assigned:one"
    )
    assert all(rule["resourceNames"] == ["one"] for rule in made["rules"])
    assert {verb for rule in made["rules"] for verb in rule["verbs"]} == {"get", "create"}
    assert bound["subjects"] == [{"apiGroup": GROUP, "kind": "User", "name": "oidc:alice"}]


@pytest.mark.parametrize(
    ("now", "is_stale"),
    [
        ([pod(user="alice")], False),
        ([pod(), pod("two", "2", "alice")], True),
        ([pod(user="bob")], True),
        ([pod(uid="2", user="alice")], True),
        ([pod(user="bob", **{"vkprovider.io/learner": "alice"})], False),
        ([], True),
    ],
)
def test_a_binding_is_stale_when_its_pod_is_no_more_the_learners(now: list[LabletPod], *, is_stale: bool) -> None:
    """A learner whom the provider reports counts before what somebody wrote over the name."""
    assert bool(stale([binding(pod(user="alice"), "oidc:")], now)) is is_stale


def test_guests_are_bound_beside_the_learner_and_stale_when_they_are_none_any_more() -> None:
    shared = pod(user="alice", **{"vkprovider.io/guests": '{"eve":"type","bob":"watch"}'})
    bound = binding_for(shared, "oidc:")
    assert [each["name"] for each in bound["subjects"]] == ["oidc:alice", "oidc:bob", "oidc:eve"]
    there = binding(shared)
    assert stale([there], [shared]) == []
    assert stale([there], [pod(user="alice", **{"vkprovider.io/guests": '{"bob":"watch"}'})]) == [there]
    assert stale([binding(pod(user="alice"))], [shared]) == [], "one who is not in yet shuts nobody out"


def test_a_binding_of_that_label_that_is_nobodys_is_stale() -> None:
    strange = msgspec.convert({"metadata": {"name": "vkprovider-assigned:one"}}, RoleBinding)
    assert stale([strange], [pod(user="alice")]) == [strange]


def learners(*subjects: dict[str, Any], role: str = "vkprovider-class-learner") -> RoleBinding:
    ref = {"apiGroup": GROUP, "kind": "ClusterRole", "name": role}
    return msgspec.convert({"metadata": {"name": "x"}, "roleRef": ref, "subjects": subjects}, RoleBinding)


def test_who_attends_a_class() -> None:
    found = attendance_in(
        [
            learners({"kind": "User", "name": "oidc:bob"}, {"kind": "User", "name": "oidc:ann"}),
            learners({"kind": "ServiceAccount", "name": "robot", "namespace": "lab"}),
            learners({"kind": "Group", "name": "students"}),
            learners({"kind": "User", "name": "oidc:teacher"}, role="vkprovider-instructor"),
            msgspec.convert({"metadata": {"name": "x"}, "subjects": None}, RoleBinding),
        ],
        "oidc:",
    )
    assert found == Attendance(("ann", "bob", "system:serviceaccount:lab:robot"), ("students",))


@pytest.mark.parametrize(
    ("known", "says"),
    [
        (Attendance(("ann", "bob")), "anna, eve: nobody of that name attends the class friday"),
        (Attendance(("ann", "bob")), "is bound to ann, bob. The lablet opens for whoever is oidc:anna to the cluster"),
        (Attendance(("anna", "eve", "ann")), ""),
        (Attendance(), ""),
        (Attendance(("ann",), ("students",)), ""),
    ],
)
def test_learners_whom_nothing_knows(known: Attendance, says: str) -> None:
    """Where a group attends, or nobody is bound, nobody can tell."""
    said = strangers(["anna", "ann", "eve"] if "bob" in known.learners else ["anna", "eve"], known, "oidc:", "friday")
    assert says in said
    assert bool(said) is bool(says)
