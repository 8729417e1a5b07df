"""Whose the lablets of classes are, by what stands on Pods and in RoleBindings."""

from typing import Any

import msgspec
import pytest

from tests.unit.portal.test_portal_lablets import pod
from vkprovider.lablet import names
from vkprovider.platform.objects import Pod, RoleBinding
from vkprovider.portal.pure.given import OpenedLablet, is_of, learner_name, opened_by
from vkprovider.portal.service.informers import OtherLablets
from vkprovider.portal.service.learners import LabletLearners


def binding(
    name: str = "lab-1", user: str = "oidc:bob", *, uid: str = "", role: dict[str, str] | None = None
) -> RoleBinding:
    """Return the binding that `assign` writes; with a role, one of an admin."""
    own = names.assignment_name(name)
    body: dict[str, Any] = {
        "metadata": {
            "name": own if role is None else f"admins-{name}",
            "namespace": "net101",
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid or f"uid-{name}"}],
        },
        "roleRef": role or {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": own},
        "subjects": [{"kind": "User", "name": user}, {"kind": "Group", "name": "students"}],
    }
    return msgspec.convert(body, RoleBinding)


LEARNERS = {"kind": "ClusterRole", "name": names.ROLE_CLASS_LEARNER}


def given(name: str = "lab-1", learner: str = "bob", namespace: str = "net101", *, by: str = "username") -> Pod:
    found = pod(name, namespace)
    notes = {f"vkprovider.io/{by}": learner} if learner else {}
    return msgspec.structs.replace(found, metadata=msgspec.structs.replace(found.metadata, annotations=notes))


def test_a_binding_opens_the_lablet_of_its_name_and_owner() -> None:
    assert opened_by(binding()) == OpenedLablet("net101", "lab-1", "uid-lab-1")
    assert binding().usernames == {"oidc:bob"}


@pytest.mark.parametrize(
    "other",
    [
        binding(role={"kind": "Role", "name": names.assignment_name("lab-1")}),
        binding(role={"kind": "ClusterRole", "name": names.assignment_name("lab-1")}),
        binding(role=LEARNERS),
        msgspec.convert({"metadata": {"name": names.assignment_name("lab-1"), "namespace": "net101"}}, RoleBinding),
    ],
)
def test_no_other_binding_opens_one(other: RoleBinding) -> None:
    assert opened_by(other) is None


def test_accounts_are_named_in_full_and_null_subjects_are_nobody() -> None:
    account = {"kind": "ServiceAccount", "name": "bob", "namespace": "people"}
    body = {"metadata": {"name": "x"}, "roleRef": LEARNERS, "subjects": [account]}
    assert msgspec.convert(body, RoleBinding).usernames == {"system:serviceaccount:people:bob"}
    assert msgspec.convert({**body, "subjects": None}, RoleBinding).usernames == set()
    assert msgspec.convert(body, RoleBinding).binds(names.ROLE_CLASS_LEARNER)


def test_a_free_lablet_is_nobodys() -> None:
    assert learner_name(given(learner="")) == ""
    assert not is_of(given(learner=""), ["", "bob"])
    assert is_of(given(by="learner"), ["bob"])
    assert not is_of(given(), ["Bob", "oidc:bob"])


def known(*pods: Pod) -> tuple[OtherLablets, LabletLearners]:
    lablets = OtherLablets(lambda _: {}, list)
    for each in pods:
        lablets.pod_changed(None, each)
    return lablets, LabletLearners(lablets)


def shown(learners: LabletLearners, classes: tuple[str, ...] = ()) -> list[str]:
    return [each.metadata.name for each in learners.lablets_of("oidc:bob", ["bob"], classes)]


def test_a_lablet_is_shown_by_its_binding_or_in_a_class_that_one_attends() -> None:
    lablets, learners = known(given(), given("lab-2"), given("lab-3", "ann"), given("lab-4", namespace="net202"))
    assert shown(learners) == [], "a name on a Pod is no right"
    for name in ("lab-2", "lab-3"):
        learners.binding_changed(None, binding(name))
    assert shown(learners) == ["lab-2"], "the Role on lab-3 is left over: it is ann's now"
    assert shown(learners, ("net202",)) == ["lab-2", "lab-4"]
    learners.binding_changed(binding("lab-2"), binding("lab-2", uid="of another Pod"))
    assert shown(learners) == []
    learners.binding_changed(binding("lab-2", uid="of another Pod"), binding("lab-2"))
    lablets.pod_changed(given("lab-2"), None)
    assert shown(learners) == []
    learners.binding_changed(binding("lab-2"), None)
    learners.binding_changed(binding("lab-3"), None)
    assert len(learners) == 0


def test_strays_with_the_label_of_user_labs_are_lablets_too() -> None:
    stray = given("lab-9")
    learners = LabletLearners(OtherLablets(lambda _: {"lab-9": stray}, lambda: ["net101"]))
    assert shown(learners, ("net101",)) == ["lab-9"]


def test_classes_that_somebody_attends_by_name_or_group() -> None:
    _, learners = known()
    admitting = binding(role=LEARNERS)
    learners.binding_changed(None, admitting)
    assert learners.attended_by("oidc:bob", ()) == ["net101"]
    assert learners.attended_by("oidc:ann", ("students",)) == ["net101"]
    assert learners.attended_by("oidc:ann", ()) == []
    learners.binding_changed(admitting, None)
    assert learners.attended_by("oidc:bob", ("students",)) == []


async def test_who_gets_or_loses_a_lablet_hears_of_it() -> None:
    lablets, learners = known(given())
    async with learners.listen("oidc:bob") as opened, lablets.listen_learner("bob") as mine:
        learners.binding_changed(None, binding())
        assert opened.is_set()
        lablets.pod_changed(given(), given(learner="ann"))
        assert mine.is_set(), "it is another learner's now"
        mine.clear()
        lablets.pod_changed(given(learner="ann"), given(learner="ben"))
        assert not mine.is_set()
        lablets.stray_changed(None, given("lab-9"))
        assert mine.is_set()
