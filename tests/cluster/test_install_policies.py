"""What the shipped admission policies refuse, what they let through, and what they say (C08, C46)."""

import copy
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.installation import EVERYBODY, MANIFESTS, WORKER, Installation, installed
from tests.support.topologies import definition, pod
from tests.support.waiting import until
from vkprovider.api import names
from vkprovider.domain.definition import refresh

TOLERATION = {"key": names.TAINT_VIRTUAL_NODE, "operator": "Exists"}
EVERYTHING = {"operator": "Exists"}
PLAIN_NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "plain", "labels": {"kubernetes.io/os": "linux"}},
    "status": {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
}
NETWORK = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "metadata": {"name": "network", "namespace": "kube-system"},
    "spec": {
        "selector": {"matchLabels": {"app": "network"}},
        "template": {
            "metadata": {"labels": {"app": "network"}},
            "spec": {
                "tolerations": [EVERYTHING],
                "nodeSelector": {"kubernetes.io/os": "linux"},
                "containers": [{"name": "network", "image": "network:1"}],
            },
        },
    },
}


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """`netlab` charges licences, `free` neither licences nor ports; `other` is somebody else's RuntimeClass."""
    with installed("policies", tmp_path_factory.mktemp("installation")) as made:
        free = {"cpu": "100m", "memory": "64Mi", "labNodes": 0, "ports": 0}
        made.apply(definition("netlab"), definition("free", resources=free))
        made.apply({**runtime_class("other"), "overhead": {"podFixed": {"cpu": "10m"}}})
        for name in ("netlab", "free"):
            until(lambda name=name: made.get("runtimeclass", name), 30, name)  # type: ignore[misc]
        # The API server learns of policies and RuntimeClasses a moment after they were made.
        until(lambda: refusal(made, plain("first", tolerations=[TOLERATION])), 45)
        until(lambda: refusal(made, plain("first", tolerations=[TOLERATION], runtimeClassName="other")), 45)
        until(lambda: refusal(made, annotated("first", names.ANNOTATION_STATE)), 45)
        until(lambda: ask(made, "by hand", "--dry-run=server"), 45)
        yield made


def runtime_class(name: str) -> dict[str, Any]:
    return {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name}, "handler": "runc"}


def plain(name: str, **spec: Any) -> dict[str, Any]:
    """A Pod that is no lablet, and bound to no node: no kubelet would let it go."""
    spec = {"schedulerName": "nobody", "containers": [{"name": "main", "image": "main:1"}], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def annotated(name: str, key: str) -> dict[str, Any]:
    made = pod(name, "netlab")
    made["metadata"]["annotations"] = {key: "made up"}
    return made


def refusal(installation: Installation, item: dict[str, Any]) -> str:
    """What the API server says against an object; empty if it would take it."""
    return installation.refused("create", "--dry-run=server", "-f", "-", input=json.dumps(item))


# ------------------------------------------------------------------------------------------- tolerations
@pytest.mark.parametrize("key", [names.TAINT_VIRTUAL_NODE, names.TAINT_ENV, "vkprovider.io/anything"])
def test_toleration_needs_the_runtime_class_of_a_definition(installation: Installation, key: str) -> None:
    tolerations = [{"key": "some/taint", "operator": "Exists"}, {"key": key, "operator": "Exists"}]
    said = refusal(installation, plain("stray", tolerations=tolerations))
    assert "Only lablets may tolerate vkprovider.io/ taints or ask for a virtual node." in said
    assert "Set spec.runtimeClassName to a LabletDefinition" in said
    said = refusal(installation, plain("stray", tolerations=tolerations, runtimeClassName="other"))
    assert "RuntimeClass other is not that of a LabletDefinition" in said
    assert "remove tolerations and nodeSelector with keys that begin with vkprovider.io/" in said


@pytest.mark.parametrize(
    "wish",
    [
        {"nodeName": f"vnode.{WORKER}"},
        {"nodeName": "vnode.not-there"},
        {"nodeSelector": {"vkprovider.io/component": "vnode"}},
        {"nodeSelector": {"kubernetes.io/hostname": f"vnode.{WORKER}"}},
    ],
)
def test_virtual_node_is_asked_for_by_lablets_only(installation: Installation, wish: dict[str, Any]) -> None:
    """A squatter with a toleration of everything would take the room of lablets."""
    for more in ({}, {"tolerations": [EVERYTHING]}):
        said = refusal(installation, plain("squatter", **wish, **more))
        assert "Only lablets may tolerate vkprovider.io/ taints or ask for a virtual node." in said
        said = refusal(installation, plain("squatter", runtimeClassName="other", **wish, **more))
        assert "RuntimeClass other is not that of a LabletDefinition" in said
    lablet = pod("lablet", "netlab")
    lablet["spec"] |= wish if "nodeName" in wish else {}
    assert refusal(installation, lablet) == ""


@pytest.mark.parametrize("name", ["netlab", "free"])
def test_lablets_pass(installation: Installation, name: str) -> None:
    """With the tolerations that the RuntimeClass adds, and with their own, as a DaemonSet of lablets has them."""
    assert refusal(installation, pod("lablet", name)) == ""
    assert refusal(installation, pod("lablet", name, tolerations=[TOLERATION])) == ""


def test_others_pass(installation: Installation) -> None:
    assert refusal(installation, plain("other")) == ""
    assert refusal(installation, plain("other", runtimeClassName="other")) == ""
    assert refusal(installation, plain("other", tolerations=[EVERYTHING])) == ""
    assert refusal(installation, plain("other", nodeName="plain")) == ""
    assert refusal(installation, plain("other", nodeSelector={"kubernetes.io/hostname": "plain"})) == ""
    assert refusal(installation, plain("other", tolerations=[{"key": "some/taint", "operator": "Exists"}])) == ""


def test_network_of_a_plain_node_starts_there_and_nowhere_else(installation: Installation) -> None:
    """A DaemonSet that tolerates everything, as CNI plugins do."""
    installation.kubectl("create", "-f", "-", input=json.dumps(PLAIN_NODE))
    installation.apply(NETWORK)
    where = ("pods", "--namespace=kube-system", "--selector=app=network")
    bound = until(lambda: [p for p in installation.items(*where) if p["spec"].get("nodeName")], 45)
    assert [p["spec"]["nodeName"] for p in bound] == ["plain"]
    assert installation.get("daemonset", "network", "--namespace=kube-system")["status"]["desiredNumberScheduled"] == 1


def test_toleration_added_later_is_refused(installation: Installation) -> None:
    installation.apply(plain("late", tolerations=[{"key": "some/taint", "operator": "Exists"}]))
    patch = '[{"op": "add", "path": "/spec/tolerations/-", "value": %s}]' % json.dumps(TOLERATION)  # noqa: UP031 (braces)
    said = installation.refused("patch", "pod", "late", "--type=json", f"--patch={patch}")
    assert "Only lablets may tolerate" in said
    installation.kubectl("label", "pod", "late", "still=changes")
    installation.kubectl("delete", "pod", "late", "--now")


def test_pod_from_before_the_policies_can_be_changed_and_removed(installation: Installation) -> None:
    before = plain("before", tolerations=[TOLERATION])
    installation.kubectl("delete", "validatingadmissionpolicybinding", "vkprovider-tolerations")
    until(lambda: not refusal(installation, before), 45)
    installation.apply(before)
    installation.kubectl("apply", "-k", str(MANIFESTS / "policies"))
    until(lambda: refusal(installation, before | {"metadata": {"name": "after"}}), 45)
    installation.kubectl("label", "pod", "before", "still=changes")
    installation.kubectl("delete", "pod", "before", "--now")


# ------------------------------------------------------------------------------------------- reports
@pytest.mark.parametrize("key", sorted(names.REPORTS - {names.ANNOTATION_LEARNER}))
def test_reports_come_from_the_provider_only(installation: Installation, key: str) -> None:
    said = refusal(installation, annotated("forged", key))
    assert f"Only the provider writes {key}. Remove it from the annotations of the manifest" in said


@pytest.mark.parametrize("key", ["vkprovider.io/username", "vkprovider.io/desired-state", "example.com/state"])
def test_input_passes(installation: Installation, key: str) -> None:
    assert refusal(installation, annotated("asks", key)) == ""


def test_reports_of_a_lablet_are_carried_along_and_not_changed(installation: Installation) -> None:
    installation.apply(pod("lablet", "netlab"))
    [found] = installation.wait_lablets("default", 1)
    reports = found["metadata"]["annotations"]
    assert {names.ANNOTATION_STATE, names.ANNOTATION_LAB_ID, names.ANNOTATION_CONTENT} <= reports.keys()

    carried = copy.deepcopy(found)
    carried["metadata"]["labels"]["carried"] = "along"
    installation.kubectl("replace", "-f", "-", input=json.dumps(carried))
    installation.kubectl("annotate", "pod", "lablet", "vkprovider.io/username=ada")
    heard = '{"status": {"conditions": [{"type": "example.com/Seen", "status": "True"}]}}'
    installation.kubectl("patch", "pod", "lablet", "--subresource=status", f"--patch={heard}")

    forged = f"{names.ANNOTATION_LAB_ID}=somebody-elses"
    assert f"Only the provider writes {names.ANNOTATION_LAB_ID}." in installation.refused(
        "annotate", "pod", "lablet", forged, "--overwrite"
    )
    patch = json.dumps({"metadata": {"annotations": {names.ANNOTATION_LAB_ID: "somebody-elses"}}})
    said = installation.refused("patch", "pod", "lablet", "--subresource=status", f"--patch={patch}")
    assert "Only the provider writes" in said

    installation.kubectl("annotate", "pod", "lablet", f"{names.ANNOTATION_STATE}-")

    def repaired() -> bool:
        return bool(installation.get("pod", "lablet")["metadata"]["annotations"].get(names.ANNOTATION_STATE) == "READY")

    until(repaired, 45, "the provider does not write its report again")
    installation.kubectl("delete", "pod", "lablet")


def test_reports_do_not_come_with_a_binding(installation: Installation) -> None:
    installation.apply(plain("unbound"))
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "unbound", "annotations": {names.ANNOTATION_STATE: "READY"}},
        "target": {"apiVersion": "v1", "kind": "Node", "name": f"vnode.{WORKER}"},
    }
    path = "/api/v1/namespaces/default/pods/unbound/binding"
    said = installation.refused("create", f"--raw={path}", "-f", "-", input=json.dumps(binding))
    assert f"Only the provider writes {names.ANNOTATION_STATE}" in said
    installation.kubectl("delete", "pod", "unbound", "--now")


# ------------------------------------------------------------------------------------------- learners
def test_username_is_neither_changed_nor_removed_while_the_lablet_has_a_learner(installation: Installation) -> None:
    """Everything else may change; the provider itself ends the learner's time."""
    username, learner = names.ANNOTATION_USERNAME, names.ANNOTATION_LEARNER
    item = pod("taken", "netlab")
    item["metadata"]["annotations"] = {username: "mallory"}
    item["metadata"]["labels"] = {names.LABEL_POOL: "evening"}
    installation.apply(item)

    def notes() -> dict[str, str]:
        found: dict[str, str] = installation.get("pod", "taken")["metadata"].get("annotations", {})
        return found

    until(lambda: notes().get(learner) == "mallory", 45)
    for change in (f"{username}=eve", f"{username}-"):
        said = installation.refused("annotate", "pod", "taken", change, "--overwrite")
        assert "The lablet, its session and its lab are those of mallory." in said
        assert "kubectl lablet release taken" in said
        said = installation.refused("annotate", "pod", "taken", change.replace(username, learner), "--overwrite")
        assert f"Only the provider writes and removes {learner}." in said
    patch = json.dumps({"metadata": {"annotations": {username: "eve"}}})
    said = installation.refused("patch", "pod", "taken", "--subresource=status", f"--patch={patch}")
    assert "are those of mallory" in said
    installation.kubectl("label", "pod", "taken", "still=changes")
    installation.wait_lablets("default", 1)
    lent = f"{names.ANNOTATION_LENT_BY}=evening"
    installation.kubectl("annotate", "pod", "taken", lent, f"{names.ANNOTATION_DESIRED_STATE}=COLLECTING")
    until(lambda: not {username, learner, names.ANNOTATION_LENT_BY} & notes().keys(), 60)
    installation.kubectl("annotate", "pod", "taken", f"{username}=eve")
    until(lambda: notes().get(learner) == "eve", 45)
    installation.kubectl("delete", "pod", "taken")


def test_learner_comes_from_the_provider_only(installation: Installation) -> None:
    said = refusal(installation, annotated("forged", names.ANNOTATION_LEARNER))
    assert "Only the provider writes and removes vkprovider.io/learner." in said


# ------------------------------------------------------------------------------------------- refresh requests
AT = "2026-01-01T00:00:00Z"


def ask(installation: Installation, request: str, *arguments: str) -> str:
    """What the API server says against a refresh request; empty if it takes it."""
    asked = f"{names.ANNOTATION_REFRESH}={request}"
    return installation.refused("annotate", "labletdefinition", "netlab", asked, "--overwrite", *arguments)


def test_refresh_is_asked_for_in_ones_own_name(installation: Installation) -> None:
    """R000-076."""
    review = installation.kubectl("auth", "whoami", "-o", "json")
    me = json.loads(review)["status"]["userInfo"]["username"]
    for force in (False, True):
        assert ask(installation, refresh.write(me, AT, force=force), "--dry-run=server") == ""
    own = refresh.write(me, AT, force=False)
    for request in (
        refresh.write("somebody-else", AT, force=False),
        refresh.write("", AT, force=False),
        refresh.write(me + "x", AT, force=True),
        own + " ",
        own.replace('"force":false', f'"force":false,"requestedBy":"{me}"'),
        own.replace('"force":false', '"force":0'),
        own.replace('"}', '","requestedBy":"somebody-else"}'),
        f'{me}"}}',
        AT,
        "now",
    ):
        said = ask(installation, request)
        assert f"A refresh is asked for in your own name, {me}, by: kubectl lablet refresh netlab" in said, request
    made = definition("copied")
    made["metadata"]["annotations"] = {names.ANNOTATION_REFRESH: refresh.write("somebody-else", AT, force=False)}
    assert "A refresh is asked for in your own name" in refusal(installation, made)


@pytest.mark.parametrize("user", ["jane@example.com", "system:serviceaccount:team:bot", 'a "b" \\c', "jürgen by jane"])
def test_name_of_any_caller_fits(installation: Installation, user: str) -> None:
    request = refresh.write(user, AT, force=False)
    rights = ("--as", user, "--as-group=system:masters", "--dry-run=server")
    assert ask(installation, request, *rights) == ""
    assert "in your own name" in ask(installation, refresh.write("system:admin", AT, force=False), *rights)


def test_request_of_somebody_else_is_carried_along(installation: Installation) -> None:
    request = refresh.write("jane", AT, force=False)
    asked = f"{names.ANNOTATION_REFRESH}={request}"
    rights = ("--as=jane", "--as-group=system:masters")
    installation.kubectl("annotate", "labletdefinition", "netlab", asked, *rights)
    installation.kubectl("label", "labletdefinition", "netlab", "still=changes")

    def answered() -> bool:
        found = installation.get("labletdefinition", "netlab")
        assert found["status"].get("lastRefresh", {}).get("requestedBy") == "jane", found
        return True

    until(answered, 45)
    installation.kubectl("annotate", "labletdefinition", "netlab", f"{names.ANNOTATION_REFRESH}-")


# ------------------------------------------------------------------------------------------- use of definitions
@pytest.fixture
def nobody_may(installation: Installation) -> Iterator[None]:
    """The rights as the overlay leaves them; at the end everybody may run lablets again."""
    installation.kubectl("delete", "clusterrolebinding", "lablets")
    yield
    installation.kubectl(*EVERYBODY)
    until(lambda: not refusal(installation, elsewhere()), 45)


def elsewhere() -> dict[str, Any]:
    """A lablet of another namespace."""
    lablet = pod("lablet", "netlab")
    lablet["metadata"]["namespace"] = "elsewhere"
    return lablet


@pytest.mark.usefixtures("nobody_may")
def test_definition_must_be_granted_to_the_service_account(installation: Installation) -> None:
    """In its namespace, by the command that the refusal names; a toleration of everything is no way around."""
    said = until(lambda: refusal(installation, pod("lablet", "netlab")), 45)
    assert "ServiceAccount default/default may not use LabletDefinition netlab" in said
    assert "may not use" in refusal(installation, pod("lablet", "netlab", tolerations=[EVERYTHING]))
    assert refusal(installation, plain("other", runtimeClassName="other", tolerations=[EVERYTHING])) == ""
    command = re.search(r"kubectl (-n default create rolebinding .*)", said)
    assert command
    installation.kubectl(*command[1].split())
    until(lambda: not refusal(installation, pod("lablet", "netlab")), 45)
    installation.kubectl("create", "namespace", "elsewhere")
    until(lambda: "ServiceAccount elsewhere/default may not use" in refusal(installation, elsewhere()), 45)
