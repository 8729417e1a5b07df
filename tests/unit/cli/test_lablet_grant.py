"""Who may be an instructor, and the bindings that it takes: the decisions of `kubectl lablet grant`."""

import json
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest
import yaml
from click.testing import CliRunner

from vkprovider.cli.lablet.granting import (
    Grant,
    grants,
    namespace_of,
    page_of,
    subject_of,
    warning_of,
)
from vkprovider.cli.lablet.group import main
from vkprovider.platform.objects import RoleBinding, Subject

GROUP = "rbac.authorization.k8s.io"
INSTRUCTOR = "vkprovider-instructor"
ROLES = {
    role["metadata"]["name"]: role
    for name in ("roles.yaml", "rbac.yaml")
    for role in yaml.safe_load_all((Path(__file__).parents[3] / "manifests" / "base" / name).read_text())
    if role["kind"] == "ClusterRole"
}


def dry_run(*words: str) -> list[dict[str, Any]]:
    answer = CliRunner().invoke(main, ["grant", *words, "--dry-run", "-o", "yaml", "--kubeconfig", "/nowhere"])
    assert answer.exit_code == 0, answer.output
    return list(yaml.safe_load_all(answer.output))


@pytest.mark.parametrize(
    ("words", "subject"),
    [
        (["alice@example.com"], {"kind": "User", "name": "alice@example.com", "apiGroup": GROUP}),
        (["teachers", "--group"], {"kind": "Group", "name": "teachers", "apiGroup": GROUP}),
        (
            ["system:serviceaccounts:friday", "--group"],
            {"kind": "Group", "name": "system:serviceaccounts:friday", "apiGroup": GROUP},
        ),
        (
            ["system:serviceaccount:friday:desk"],
            {"kind": "ServiceAccount", "name": "desk", "namespace": "friday"},
        ),
        (["https://id.example.com#7"], {"kind": "User", "name": "https://id.example.com#7", "apiGroup": GROUP}),
    ],
)
def test_manifests_bind_the_user_and_need_no_cluster(words: list[str], subject: dict[str, str]) -> None:
    made = dry_run(*words, "-n", "friday")
    bound = {each["roleRef"]["name"]: each for each in made}
    assert len(bound) == len(made)
    assert bound.keys() <= ROLES.keys()
    assert bound["vkprovider-instructor"]["subjects"] == [subject]
    assert bound["vkprovider-instructor-definitions"]["subjects"] == [subject]
    assert {name: each["metadata"].get("namespace") for name, each in bound.items()} == {
        "vkprovider-instructor": "friday",
        "vkprovider-instructor-definitions": None,
        "vkprovider-lablet-user": "friday",
        "vkprovider-topology-reader": "friday",
    }
    assert [each["kind"] for each in made if "namespace" not in each["metadata"]] == ["ClusterRoleBinding"]
    assert not any(set("/%") & set(each["metadata"]["name"]) for each in made)


def test_the_use_and_the_provider_are_bound_as_the_pages_say() -> None:
    """So that a namespace that was prepared by hand is prepared."""
    made = {each["metadata"]["name"]: each for each in dry_run("alice", "-n", "friday", "--provider-namespace", "labs")}
    assert made["lablets"]["subjects"] == [{"kind": "ServiceAccount", "name": "default", "namespace": "friday"}]
    provider = {"kind": "ServiceAccount", "name": "vkprovider", "namespace": "labs"}
    assert made["vkprovider-topologies"]["subjects"] == [provider]


@pytest.mark.parametrize(
    ("user", "group", "says"),
    [
        ("  ", False, "USER is empty"),
        ("a\nb", False, "printable"),
        ("a" * 300, False, "printable"),
        ("system:authenticated", True, "of Kubernetes itself"),
        ("system:masters", True, "of Kubernetes itself"),
        ("system:anonymous", False, "of Kubernetes itself"),
        ("system:serviceaccount:friday", False, "system:serviceaccount:NAMESPACE:NAME"),
        ("system:serviceaccounts:friday", False, "of Kubernetes itself"),
        ("system:serviceaccount:friday:desk", True, "leave out --group"),
    ],
)
def test_nobody_and_everybody_is_no_instructor(user: str, group: bool, says: str) -> None:  # noqa: FBT001 (a row)
    with pytest.raises(click.UsageError, match=says):
        subject_of(user, group=group)


@pytest.mark.parametrize(
    ("namespace", "says"),
    [
        (None, "-n NAMESPACE"),
        ("labs", "a namespace of the provider"),
        ("kube-system", "a namespace of Kubernetes"),
        ("Friday", "cannot be the name"),
        ("", "cannot be the name"),
    ],
)
def test_a_class_has_a_namespace_of_its_own(namespace: str | None, says: str) -> None:
    with pytest.raises(click.UsageError, match=says):
        namespace_of(namespace, "labs")


def bound(role: str, *subjects: Subject, kind: str = "ClusterRole") -> RoleBinding:
    ref = {"apiGroup": GROUP, "kind": kind, "name": role}
    document = {"metadata": {"name": "x"}, "roleRef": ref, "subjects": [msgspec.to_builtins(s) for s in subjects]}
    return msgspec.json.decode(json.dumps(document), type=RoleBinding)


def test_what_is_there_stays_and_what_is_other_is_named() -> None:
    alice, bob = subject_of("alice", group=False), subject_of("bob", group=False)
    wanted: Grant = grants(alice, "friday", "labs")[0]
    assert wanted.standing(None) == "missing"
    assert wanted.standing(bound("vkprovider-instructor", bob, alice)) == "there"
    assert wanted.standing(bound("vkprovider-instructor", bob)) == "incomplete"
    for other in (bound("vkprovider-login", alice), bound("vkprovider-instructor", alice, kind="Role")):
        with pytest.raises(
            click.ClickException, match="kubectl delete rolebinding/vkprovider-instructor:alice -n friday"
        ):
            wanted.standing(other)


def test_the_address_of_the_page_binds_nobody_and_needs_no_cluster() -> None:
    made = dry_run("alice", "-n", "friday", "--page-url", "https://labs.example.com/")
    [carrier] = [each for each in made if each["metadata"]["name"] == "vkprovider-instructor"]
    assert carrier["metadata"]["annotations"] == {"vkprovider.io/page-url": "https://labs.example.com"}
    assert (carrier["roleRef"]["name"], carrier["subjects"]) == ("vkprovider-instructor", [])
    again = dry_run("bob", "-n", "friday", "--page-url", "https://labs.example.com")
    assert carrier in again, "the manifest is the same for every instructor of the class"
    for wrong in ("http://labs.example.com", "labs", "https://a\x1b[2J"):
        answer = CliRunner().invoke(
            main, ["grant", "alice", "-n", "friday", "--dry-run", "-o", "yaml", "--page-url", wrong]
        )
        assert (answer.exit_code, "--page-url" in answer.output) == (2, True)


def test_another_address_is_written_and_the_old_one_named() -> None:
    assert page_of("friday", "") == []
    [wanted] = page_of("friday", "https://new", "https://old")
    assert "at https://new, until now at https://old" in wanted.means
    assert "until" not in page_of("friday", "https://new", "https://new")[0].means
    assert wanted.standing(None) == "missing"
    assert wanted.standing(bound("vkprovider-instructor")) == "outdated"
    with pytest.raises(click.ClickException, match="kubectl delete rolebinding/vkprovider-instructor -n friday"):
        wanted.standing(bound("view"))


@pytest.mark.parametrize(
    ("level", "warned"),
    [("", True), ("privileged", True), ("baseline", False), ("restricted", False), ("Baseline", True)],
)
def test_a_namespace_without_a_pod_security_level_is_warned_of(level: str, *, warned: bool) -> None:
    labels = {"pod-security.kubernetes.io/enforce": level} if level else {"pod-security.kubernetes.io/warn": "baseline"}
    said = warning_of("friday", labels)
    command = "kubectl label namespace friday pod-security.kubernetes.io/enforce=baseline --overwrite"
    assert (command in said) is warned
    assert bool(said) is warned


def rights(role: str) -> set[tuple[str, str]]:
    return {
        (resource, verb)
        for rule in ROLES[role]["rules"]
        for resource in rule.get("resources", [])
        for verb in rule["verbs"]
    }


def test_roles_of_instructors_are_part_of_no_other() -> None:
    """What they alone give cannot be had by a role of the namespace, nor passed on by its admin."""
    for name in ("vkprovider-instructor", "vkprovider-instructor-definitions"):
        assert "labels" not in ROLES[name]["metadata"]
    assert {("lablets/login", "get"), ("lablets/archive", "get"), ("lablets", "teach")} <= rights(
        "vkprovider-instructor"
    )
    for name, role in ROLES.items():
        labels = role["metadata"].get("labels", {})
        if any(label.startswith("rbac.authorization.k8s.io/aggregate-to-") for label in labels):
            assert not {each for each in rights(name) if each[0].startswith("lablets") or each[1] == "teach"}, name


def test_an_instructor_reads_no_secret_and_gives_no_rights() -> None:
    found = rights("vkprovider-instructor") | rights("vkprovider-instructor-definitions")
    assert not {each for each in found if each[0] == "secrets" or each[1] in {"*", "bind", "escalate"}}
    # By the policy vkprovider-assignments these are the ones of assigned lablets: none is changed, nor are all deleted.
    for kind in ("roles", "rolebindings"):
        assert {verb for what, verb in found if what == kind} == {"get", "list", "create", "delete"}
        assert not {each for each in rights("vkprovider-instructor-definitions") if each[0] == kind}
    # By the policy vkprovider-links these are the ones of links.
    writes = {"get", "list", "create", "patch", "delete"}
    assert {verb for what, verb in found if what == "serviceaccounts"} == writes
    assert not {each for each in found if each[0] == "cmlworkers" and each[1] not in {"get", "list", "watch"}}


def test_the_prefix_of_usernames_stands_beside_the_address() -> None:
    words = ("alice", "-n", "friday", "--username-prefix", "oidc:")
    [carrier] = [each for each in dry_run(*words) if each["metadata"]["name"] == "vkprovider-instructor"]
    assert carrier["metadata"]["annotations"] == {"vkprovider.io/username-prefix": "oidc:"}
    [both] = [each for each in dry_run(*words, "--page-url", "https://x") if each["metadata"]["name"] == INSTRUCTOR]
    assert both["metadata"]["annotations"] == {
        "vkprovider.io/page-url": "https://x",
        "vkprovider.io/username-prefix": "oidc:",
    }
    [wanted] = page_of("friday", "", prefix="")
    assert wanted.notes == {"vkprovider.io/username-prefix": None}, "an empty one removes it"
    assert wanted.standing(bound("vkprovider-instructor")) == "there"
    [other] = page_of("friday", "", prefix="oidc:")
    assert other.standing(bound("vkprovider-instructor")) == "outdated"
