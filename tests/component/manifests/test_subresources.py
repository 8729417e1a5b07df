"""No policy is passed by through a subresource: what the API server serves is compared with what each policy names.

A subresource of the same kind as its resource writes that resource, as `namespaces/finalize` does. One that a newer API
server serves fails here until the policies name it, or until it is listed as one that writes nothing of the kind.
"""

from collections.abc import Iterator
from typing import Any, Final

import pytest
import yaml

from tests.component.controllers.looking import eventually
from tests.component.manifests.test_install_policies import plain
from tests.support.apiserver import SYSTEM, Admin, Refused
from tests.support.installation import MANIFESTS

Json = dict[str, Any]
WRITES: Final = {
    ("", "pods/binding"): "UPDATE",
    ("", "bindings"): "UPDATE",
    ("", "pods/eviction"): "DELETE",
}
"""What is of another kind and writes or deletes Pods all the same; all three are created."""
NOTHING: Final = {
    ("", "pods/attach"),
    ("", "pods/exec"),
    ("", "pods/log"),
    ("", "pods/portforward"),
    ("", "pods/proxy"),
    ("", "nodes/proxy"),
    ("", "services/proxy"),
    ("", "serviceaccounts/token"),
    ("apps", "deployments/scale"),
}
"""Of another kind, and nothing that a policy looks at is written; `scale` writes the number of replicas alone."""
SPARED: Final = {
    **dict.fromkeys(
        [(f"vkprovider-{name}", kind) for name in ("tolerations", "other-runtimeclasses") for kind in ("pods/status",)],
        "keeps the spec",
    ),
    # A Binding shows nothing of the Pod: what a scheduler binds there is refused by the provider (NotALablet).
    **dict.fromkeys(
        [
            (f"vkprovider-{name}", kind)
            for name in ("tolerations", "other-runtimeclasses")
            for kind in ("pods/binding", "bindings")
        ],
        "shows no Pod",
    ),
    **dict.fromkeys(
        [("vkprovider-debug", kind) for kind in ("pods", "pods/status", "pods/resize")], "keeps ephemeral containers"
    ),
    **dict.fromkeys([("vkprovider-debug", kind) for kind in ("pods/binding", "bindings")], "shows no Pod"),
    # A rule on Pods costs each client at each request; these requests are no right of the account that is confined.
    **dict.fromkeys(
        [
            ("vkprovider-confine", kind)
            for kind in ("pods", "pods/resize", "pods/ephemeralcontainers", "pods/binding", "bindings", "pods/eviction")
        ],
        "no right",
    ),
}
"""By policy and resource, why a policy leaves it out; the tests below try what is said."""


def policies() -> Iterator[tuple[str, list[Json]]]:
    """Yield the name and the rules of each policy that is shipped."""
    for path in sorted(MANIFESTS.rglob("*.yaml")):
        if path.name == "install.yaml" or "helm" in path.parts:
            continue
        for each in yaml.safe_load_all(path.read_text()):
            if each and each.get("kind") == "ValidatingAdmissionPolicy":
                yield each["metadata"]["name"], each["spec"]["matchConstraints"]["resourceRules"]


def names(rule: Json, group: str, resource: str, operation: str) -> bool:
    """Return whether a rule matches a request."""
    kind, _, part = resource.partition("/")
    wanted = {resource, f"{kind}/*" if part else kind, "*/*", f"*/{part}" if part else "*"}
    return (
        bool({group, "*"} & set(rule["apiGroups"]))
        and bool({operation, "*"} & set(rule["operations"]))
        and bool(wanted & set(rule["resources"]))
    )


async def served(admin: Admin, group: str, version: str) -> list[Json]:
    """Return what the API server says it serves of a group."""
    answer = await admin.request("GET", f"/apis/{group}/{version}" if group else f"/api/{version}")
    found: list[Json] = answer["resources"]
    return found


async def writers(admin: Admin, rule: Json) -> list[tuple[str, str, str, str]]:
    """Return what writes the kinds of a rule: group, resource, operation, and the operation of the rule that it is.

    Fails for a subresource that neither writes its kind nor is known to write nothing.
    """
    found = []
    for group in rule["apiGroups"]:
        for version in rule["apiVersions"]:
            resources = await served(admin, group, version)
            kinds = {each["name"]: each["kind"] for each in resources if "/" not in each["name"]}
            for base in {each.partition("/")[0] for each in rule["resources"]}:
                for each in resources:
                    name, verbs = each["name"], set(each["verbs"])
                    known = WRITES.get((group, name))
                    if known and base == "pods":
                        found.append((group, name, "CREATE", known))
                    elif name.partition("/")[0] != base or known:
                        continue
                    elif each["kind"] != kinds[base]:
                        assert (group, name) in NOTHING, f"{name} ({each['kind']}): does it write a {kinds[base]}?"
                    else:
                        by = {"CREATE": {"create"}, "UPDATE": {"update", "patch"}, "DELETE": {"delete"}}
                        found += [(group, name, op, op) for op, those in by.items() if those & verbs]
    return found


async def test_each_policy_names_all_that_writes_its_kinds(admin: Admin) -> None:
    """Whatever it forbids by one way it forbids by all."""
    seen, missing = 0, []
    for policy, rules in policies():
        for rule in rules:
            if "*" in rule["apiGroups"]:
                assert rule["resources"] == ["*/*"]
                continue
            for group, resource, operation, meant in await writers(admin, rule):
                if meant in rule["operations"]:
                    seen += 1
                    if not any(names(each, group, resource, operation) for each in rules):
                        missing.append((policy, resource))
    assert seen > 40
    core = {each["name"] for each in await served(admin, "", "v1")}
    assert set(missing) == {key for key in SPARED if key[1] in core}  # an older API server has no pods/resize


async def test_what_policies_know_of_is_served(admin: Admin) -> None:
    """No exception outlives its reason."""
    for group, version in (("", "v1"), ("apps", "v1")):
        listed = {each["name"] for each in await served(admin, group, version)}
        assert {name for of, name in {*WRITES, *NOTHING} if of == group} <= listed


async def test_the_provider_has_no_right_to_what_its_policy_leaves_out(admin: Admin) -> None:
    account = f"system:serviceaccount:{SYSTEM}:vkprovider"
    assert await admin.may(account, "delete", "pods", "default")
    for (policy, resource), why in SPARED.items():
        if why == "no right":
            assert policy == "vkprovider-confine"
            for verb in ("create", "update", "patch"):
                assert not await admin.may(account, verb, resource, "default"), (verb, resource)


@pytest.fixture
async def stray(admin: Admin) -> str:
    """The path of a Pod that no node has."""
    pods = "/api/v1/namespaces/kube-system/pods"
    accounts = "/api/v1/namespaces/kube-system/serviceaccounts"
    if await admin.get(f"{accounts}/default") is None:
        await admin.create(accounts, {"metadata": {"name": "default"}})
    await admin.create(pods, plain("stray"))
    return f"{pods}/stray"


async def test_what_policies_leave_out_keeps_what_they_look_at(admin: Admin, stray: str) -> None:
    before = await admin.get(stray)
    assert before is not None
    change = {
        "nodeName": "vnode.any",
        "nodeSelector": {"vkprovider.io/component": "vnode"},
        "tolerations": [{"key": "vkprovider.io/virtual-node", "operator": "Exists"}],
        "ephemeralContainers": [{"name": "more", "image": "more:1"}],
    }
    kept = {each: before["spec"].get(each) for each in change}
    core = {each["name"] for each in await served(admin, "", "v1")}
    for part in ("status", "resize"):
        if f"pods/{part}" not in core:
            continue
        try:
            await admin.patch(f"{stray}/{part}", {"spec": change})
        except Refused as refused:
            assert refused.status in (403, 422), str(refused)  # noqa: PT017 (it may be taken and ignored as well)
    try:
        await admin.patch(stray, {"spec": {"ephemeralContainers": change["ephemeralContainers"]}})
    except Refused as refused:
        assert refused.status == 422  # noqa: PT017 (it may be taken and ignored as well)
    after = await admin.get(stray)
    assert after is not None
    assert {each: after["spec"].get(each) for each in change} == kept


async def test_binding_eviction_and_scale_work(admin: Admin, stray: str) -> None:
    """With all policies of the installation in force, and for Pods with annotations of ours that are input."""
    await admin.patch(stray, {"metadata": {"annotations": {"vkprovider.io/username": "ann"}}})
    target = {"apiVersion": "v1", "kind": "Node", "name": "plain"}
    await admin.create(f"{stray}/binding", {"metadata": {"name": "stray"}, "target": target})
    found = await admin.get(stray)
    assert found is not None
    assert found["spec"]["nodeName"] == "plain"
    await admin.patch(f"{stray}/status", {"status": {"phase": "Running"}})
    await admin.create(f"{stray}/eviction", {"metadata": {"name": "stray"}, "deleteOptions": {"gracePeriodSeconds": 0}})
    await admin.until_gone(stray)
    deployments = "/apis/apps/v1/namespaces/kube-system/deployments"
    labels = {"matchLabels": {"app": "pool"}}
    template = {"metadata": {"labels": {"app": "pool"}}, "spec": plain("pool")["spec"]}
    spec = {"replicas": 1, "selector": labels, "template": template}
    await admin.create(deployments, {"metadata": {"name": "pool"}, "spec": spec})
    try:
        scaled = await admin.patch(f"{deployments}/pool/scale", {"spec": {"replicas": 3}})
        assert scaled["spec"]["replicas"] == 3
    finally:
        await admin.delete(f"{deployments}/pool")


async def test_an_exec_of_a_pod_of_any_node_passes_all_policies(admin: Admin, stray: str) -> None:
    """It fails later: no kubelet is here (`tests/component/kubelet` has one)."""

    async def asked() -> str:
        try:
            await admin.request("POST", f"{stray}/exec?container=main&command=x&stdout=true")
        except Refused as refused:
            return str(refused)
        return ""

    said = await eventually(asked, "an answer")
    assert "ValidatingAdmissionPolicy" not in said
    assert "does not have a host assigned" in said
