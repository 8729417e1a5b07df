"""What a thief of the portal's token can write: labs of the portal. By that token, on the real API server.

And that nobody else can make what the portal takes for a lab of its own.
"""

import copy
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from tests.component.controllers.looking import eventually
from tests.support.apiserver import MEMBERS, RUNTIME_CLASSES, SYSTEM, Admin, ApiServer, Refused
from vkprovider.platform.shipped import find_manifests

ACCOUNT = "vkprovider-portal"
POLICY = "vkprovider-confine-portal"
NAMESPACES = "/api/v1/namespaces"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
MARK, USER = "vkprovider.io/portal", "vkprovider.io/user"
OWN, CLASS, UNMARKED = "nublado-thief", "portal-class", "nublado-x"
DEFINITION = "portal-lab"
NO_TOKEN = "tokens of the ServiceAccounts of links only"
Json = dict[str, Any]


def namespace(name: str, user: str = "thief", mark: str = SYSTEM) -> Json:
    labels = {MARK: mark, USER: user} if mark else {}
    return {"metadata": {"name": name, "labels": labels, "annotations": {USER: user} if user else {}}}


def pod(name: str = "nb-thief", **spec: Any) -> Json:
    limits = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    containers = [{"name": "lab", "image": "portal-lab:1.0.0", "securityContext": limits}]
    security = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    body = {"runtimeClassName": DEFINITION, "securityContext": security, "containers": containers, **spec}
    return {"metadata": {"name": name}, "spec": body}


def binding(role: str, kind: str = "ClusterRole") -> Json:
    group = "rbac.authorization.k8s.io"
    subjects = [{"apiGroup": group, "kind": "User", "name": "thief"}]
    ref = {"apiGroup": group, "kind": kind, "name": role}
    return {"metadata": {"name": f"of-{role}"}, "roleRef": ref, "subjects": subjects}


def reading(name: str = "nb-thief-parameters", **subject: str) -> Json:
    """Return the RoleBinding by which the provider reads the variables of a lab, or somebody else would."""
    provider = {"kind": "ServiceAccount", "namespace": SYSTEM, "name": "vkprovider", **subject}
    return {**binding("vkprovider-parameter-reader"), "metadata": {"name": name}, "subjects": [provider]}


def event(place: str) -> Json:
    about = {"kind": "Pod", "name": "nb-thief", "namespace": place, "apiVersion": "v1"}
    return {"metadata": {"name": "said"}, "involvedObject": about, "reason": "Said", "message": "a", "type": "Normal"}


def parts(place: str) -> dict[str, tuple[str, Json]]:
    """Return everything that a lab has in its namespace, by its collection."""
    base = f"{NAMESPACES}/{place}"
    return {
        "secrets": (f"{base}/secrets", {"metadata": {"name": "nb-thief"}, "stringData": {"token": "a"}}),
        "configmaps": (f"{base}/configmaps", {"metadata": {"name": "nb-thief-env"}, "data": {"a": "b"}}),
        "serviceaccounts": (f"{base}/serviceaccounts", {"metadata": {"name": "nb-thief"}}),
        "rolebindings": (f"{RBAC}/namespaces/{place}/rolebindings", binding("vkprovider-learner")),
        "instructors": (f"{RBAC}/namespaces/{place}/rolebindings", binding("vkprovider-lab-instructor")),
        "parameters": (f"{RBAC}/namespaces/{place}/rolebindings", reading()),
        "pods": (f"{base}/pods", pod()),
        "events": (f"{base}/events", event(place)),
    }


class Thief:
    """A client with the token of the portal's account."""

    def __init__(self, http: aiohttp.ClientSession) -> None:
        self._http = http

    async def send(self, method: str, path: str, body: object = None) -> Json:
        """Send one request.

        Raises:
            Refused: By the API server.
        """
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        async with self._http.request(method, path, json=body, headers={"Content-Type": kind}) as answer:
            text = await answer.text()
            found: Json = json.loads(text) if text.startswith("{") else {"message": text}
            if answer.status >= 400:
                raise Refused(answer.status, found)
            return found

    async def refused(self, words: str, method: str, path: str, body: object = None) -> None:
        """Send one request that the policy refuses with these words."""
        with pytest.raises(Refused, match=words) as refused:
            await self.send(method, path, body)
        assert POLICY in str(refused.value)
        assert refused.value.status == 403

    async def forbidden(self, method: str, path: str, body: object = None) -> None:
        """Send one request that the account has no right to."""
        with pytest.raises(Refused, match=r"403 .*cannot") as refused:
            await self.send(method, path, body)
        assert POLICY not in str(refused.value)


@pytest.fixture
async def admin(apiserver: ApiServer) -> AsyncIterator[Admin]:
    """An administrator, a namespace of a class, and one with a name as of the portal, which stay."""
    apiserver.kubectl("apply", "--server-side", "-k", str(find_manifests() / "components" / "portal"))
    async with Admin(apiserver) as admin:
        for name in (CLASS, UNMARKED):
            if await admin.get(f"{NAMESPACES}/{name}") is None:
                await admin.create(NAMESPACES, namespace(name, user="", mark=""))
        selector = {"vkprovider.io/component": "vnode"}
        labels = {"vkprovider.io/component": "runtimeclass"}
        made = {
            "metadata": {"name": DEFINITION, "labels": labels},
            "handler": "vkprovider",
            "scheduling": {"nodeSelector": selector},
        }
        if await admin.get(f"{RUNTIME_CLASSES}/{DEFINITION}") is None:
            await admin.create(RUNTIME_CLASSES, made)
        yield admin
        for place in (OWN, CLASS, UNMARKED):
            for path, body in parts(place).values():
                await admin.delete(f"{path}/{body['metadata']['name']}", grace_s=0)
        await admin.delete(f"{RBAC}/clusterrolebindings/portal-has-all")
        await remove(admin, OWN)


async def remove(admin: Admin, name: str) -> None:
    """Delete a namespace, as the namespace controller does in the end; what has the mark is a lab to later tests."""
    path = f"{NAMESPACES}/{name}"
    await admin.delete(path)
    if (found := await admin.get(path)) is not None:
        await admin.replace(f"{path}/finalize", {**found, "spec": {"finalizers": []}})
    await admin.until_gone(path)


async def client_of(server: ApiServer, account: str = ACCOUNT) -> aiohttp.ClientSession:
    headers = {"Authorization": f"Bearer {server.token(account)}"}
    return aiohttp.ClientSession(server.url, headers=headers, connector=aiohttp.TCPConnector(ssl=server.client_tls()))


@pytest.fixture
async def thief(apiserver: ApiServer, admin: Admin) -> AsyncIterator[Thief]:
    async with await client_of(apiserver) as http:
        thief = Thief(http)

        async def confined() -> bool:
            """Whether rights and policy are in force yet: it takes the API server a moment."""
            try:
                await thief.send("POST", f"{NAMESPACES}?dryRun=All", namespace("probe"))
            except Refused as refused:
                return POLICY in str(refused)
            return False

        await eventually(confined, "the policy")
        if await admin.get(f"{NAMESPACES}/{OWN}") is None:
            await thief.send("POST", NAMESPACES, namespace(OWN))
        for place in (OWN, CLASS, UNMARKED, SYSTEM, "kube-system"):
            account = f"{NAMESPACES}/{place}/serviceaccounts"
            if await admin.get(f"{account}/default") is None:  # a Pod needs one, which a controller makes
                await admin.create(account, {"metadata": {"name": "default"}})
        yield thief


@pytest.fixture
async def powerful(thief: Thief, admin: Admin) -> Thief:
    """The thief, with every right there is."""
    account = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": SYSTEM}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    made = {"metadata": {"name": "portal-has-all"}, "roleRef": role, "subjects": [account]}
    await admin.create(f"{RBAC}/clusterrolebindings", made)

    async def granted() -> bool:
        return await admin.may(f"system:serviceaccount:{SYSTEM}:{ACCOUNT}", "delete", "nodes", "")

    await eventually(granted, "the binding")
    return thief


async def test_a_lab_is_made_extended_and_ended(thief: Thief) -> None:
    """Everything that the portal writes is allowed, with nothing but its rights and in its own namespaces."""
    for path, body in parts(OWN).values():
        await thief.send("POST", path, body)
    for name in ("configmaps", "secrets"):
        path, body = parts(OWN)[name]
        with pytest.raises(Refused, match="AlreadyExists"):
            await thief.send("POST", f"{path}?dryRun=All", body)
    later = {"metadata": {"annotations": {"vkprovider.io/timeslot-end": "2026-11-26T14:30:00Z"}}}
    await thief.send("PATCH", f"{NAMESPACES}/{OWN}/pods/nb-thief", later)
    await thief.send("PATCH", f"{NAMESPACES}/{OWN}/events/said", {"message": "b", "count": 2})
    done = {"metadata": {"annotations": {"vkprovider.io/operation": "{}"}}}
    await thief.send("PATCH", f"{NAMESPACES}/{OWN}", done)
    await thief.send("DELETE", f"{NAMESPACES}/{OWN}/pods/nb-thief")
    await thief.send("DELETE", f"{NAMESPACES}/{OWN}?dryRun=All")
    for name in ("vkprovider-portal.portal-1", "vkprovider-portal-1", "vkprovider-userlab-thief"):
        made = await thief.send("POST", MEMBERS, {"metadata": {"name": name}, "spec": {"holderIdentity": "a"}})
        made["spec"]["holderIdentity"] = "b"
        await thief.send("PUT", f"{MEMBERS}/{name}", made)
        await thief.send("DELETE", f"{MEMBERS}/{name}")
    review = {"spec": {"token": "a"}}
    await thief.send("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)
    asked = {"group": "vkprovider.io", "resource": "userlabs", "verb": "use"}
    spec = {"spec": {"user": "ann", "resourceAttributes": asked}}
    await thief.send("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", spec)
    for path in (
        "/api/v1/pods",
        "/api/v1/events",
        "/api/v1/nodes",
        NAMESPACES,
        RUNTIME_CLASSES,
        "/apis/vkprovider.io/v1alpha1/labletdefinitions",
        MEMBERS,
    ):
        await thief.send("GET", f"{path}?limit=1")


@pytest.mark.parametrize("place", ["kube-system", SYSTEM, CLASS, UNMARKED])
@pytest.mark.parametrize("part", sorted(parts(OWN)))
async def test_nothing_is_written_in_a_namespace_that_is_not_the_portals(thief: Thief, place: str, part: str) -> None:
    path, body = parts(place)[part]
    await thief.refused(f"vkprovider.io/portal={SYSTEM} only, and {place} has not", "POST", path, body)


async def test_pods_and_events_of_others_stay(thief: Thief, admin: Admin) -> None:
    words = f"and {CLASS} has not"
    for part in ("pods", "events"):
        path, body = parts(CLASS)[part]
        await admin.create(path, body)
        one = f"{path}/{body['metadata']['name']}"
        await thief.refused(words, "PATCH", one, {"metadata": {"labels": {MARK: SYSTEM}}})
    await thief.refused(words, "DELETE", f"{NAMESPACES}/{CLASS}/pods/nb-thief")
    await admin.patch(f"{NAMESPACES}/{CLASS}/pods/nb-thief", {"metadata": {"labels": {MARK: SYSTEM, USER: "thief"}}})
    await thief.refused(words, "DELETE", f"{NAMESPACES}/{CLASS}/pods/nb-thief")


async def test_a_namespace_has_the_mark_from_its_beginning_to_its_end(thief: Thief) -> None:
    words = "Of Namespaces the portal may write those that it made"
    for made in (
        namespace("nublado-y", mark=""),
        namespace("nublado-y", mark="elsewhere"),
        namespace("other-y"),
        namespace("nublado"),
        namespace("kube-y"),
    ):
        await thief.refused(words, "POST", NAMESPACES, made)
    marked = {"metadata": {"labels": {MARK: SYSTEM, USER: "thief"}, "annotations": {USER: "thief"}}}
    for name in ("kube-system", SYSTEM, "default", CLASS, UNMARKED):
        for change in (marked, {"metadata": {"labels": {"a": "b"}}}, {"metadata": {"labels": {MARK: None}}}):
            await thief.refused(words, "PATCH", f"{NAMESPACES}/{name}", change)
    for name in (CLASS, UNMARKED):
        await thief.refused(words, "DELETE", f"{NAMESPACES}/{name}")
    for mark in (None, "elsewhere", ""):
        await thief.refused(words, "PATCH", f"{NAMESPACES}/{OWN}", {"metadata": {"labels": {MARK: mark}}})


async def test_a_namespace_is_one_users_until_its_end(thief: Thief, admin: Admin) -> None:
    """A warm one gets its user once."""
    for user in ("ann", None, ""):
        change = {"metadata": {"annotations": {USER: user}}}
        await thief.refused("is that of thief until its end", "PATCH", f"{NAMESPACES}/{OWN}", change)
    warm = "nublado-warm-00000000ff"
    if await admin.get(f"{NAMESPACES}/{warm}") is None:
        await thief.send("POST", NAMESPACES, namespace(warm, user=""))
        await thief.send("PATCH", f"{NAMESPACES}/{warm}", {"metadata": {"annotations": {USER: "ann"}}})
    change = {"metadata": {"annotations": {USER: "bob"}}}
    await thief.refused("is that of ann until its end", "PATCH", f"{NAMESPACES}/{warm}", change)


async def test_a_pod_of_the_portal_is_a_lablet_and_never_on_an_ordinary_node(thief: Thief, admin: Admin) -> None:
    plain = {"metadata": {"name": "portal-plain"}, "handler": "runc"}
    if await admin.get(f"{RUNTIME_CLASSES}/portal-plain") is None:
        await admin.create(RUNTIME_CLASSES, plain)
    words = "The Pods of the portal are lablets"
    path = f"{NAMESPACES}/{OWN}/pods"
    host = {"volumes": [{"name": "host", "hostPath": {"path": "/"}}], "hostPID": True}
    for spec in (
        {"runtimeClassName": None},
        {"runtimeClassName": None, **host},
        {"runtimeClassName": "portal-plain"},
        {"nodeName": "control-plane-1"},
    ):
        await thief.refused(words, "POST", path, pod(**spec))


async def test_no_other_role_is_bound(powerful: Thief) -> None:
    path = f"{RBAC}/namespaces/{OWN}/rolebindings"
    for role in ("cluster-admin", "vkprovider", "vkprovider-portal", "admin", "vkprovider-instructor"):
        await powerful.refused("and no other role", "POST", path, binding(role))
    await powerful.refused("and no other role", "POST", path, binding("vkprovider-learner", "Role"))


async def test_nobody_but_the_provider_reads_the_variables_of_a_lab(powerful: Thief) -> None:
    path = f"{RBAC}/namespaces/{OWN}/rolebindings"
    for body in (
        reading(name="parameters"),
        reading(name="nb-x", namespace=OWN),
        {**reading(name="nb-x"), "subjects": [{"kind": "ServiceAccount", "namespace": SYSTEM, "name": "a"}]},
        {**binding("vkprovider-parameter-reader"), "metadata": {"name": "nb-x"}},
    ):
        await powerful.refused("and to nobody else", "POST", path, body)


async def test_without_more_rights_no_other_role_is_bound_either(thief: Thief) -> None:
    path = f"{RBAC}/namespaces/{OWN}/rolebindings"
    for role in ("cluster-admin", "vkprovider", "vkprovider-download", "edit"):
        with pytest.raises(Refused, match=r"attempting to grant RBAC permissions not currently held|no other role"):
            await thief.send("POST", path, binding(role))


async def test_leases_but_its_own_stay(thief: Thief, admin: Admin) -> None:
    theirs = {"metadata": {"name": "vkprovider-replica-portal"}, "spec": {"holderIdentity": "p"}}
    await admin.create(MEMBERS, theirs)
    path = f"{MEMBERS}/vkprovider-replica-portal"
    try:
        found = await admin.get(path)
        assert found is not None
        changed = copy.deepcopy(found)
        changed["spec"]["holderIdentity"] = "thief"
        await thief.refused("Of Leases the portal may write its own only", "PUT", path, changed)
        await thief.refused("Of Leases", "DELETE", path)
        for name in ("vkprovider", "vkprovider-mux-1", "vkprovider-portals", "other"):
            await thief.refused("Of Leases", "POST", MEMBERS, {"metadata": {"name": name}, "spec": {}})
    finally:
        await admin.delete(path)


async def test_it_reads_no_secret_opens_no_console_and_is_nobody_else(thief: Thief, admin: Admin) -> None:
    for place in ("kube-system", SYSTEM, CLASS, OWN):
        await thief.forbidden("GET", f"{NAMESPACES}/{place}/secrets/nb-thief")
        await thief.forbidden("GET", f"{NAMESPACES}/{place}/secrets")
        await thief.forbidden("GET", f"{NAMESPACES}/{place}/configmaps")
        await thief.forbidden("PATCH", f"{NAMESPACES}/{place}/secrets/nb-thief", {})
        for part in ("exec", "attach", "portforward"):
            await thief.forbidden("POST", f"{NAMESPACES}/{place}/pods/nb-thief/{part}?container=lab&command=x")
            await thief.forbidden("GET", f"{NAMESPACES}/{place}/pods/nb-thief/{part}?container=lab&command=x")
        token: Json = {"spec": {}}
        await thief.refused(NO_TOKEN, "POST", f"{NAMESPACES}/{place}/serviceaccounts/default/token", token)
    account = f"system:serviceaccount:{SYSTEM}:{ACCOUNT}"
    for kind in ("users", "groups", "serviceaccounts"):
        assert not await admin.may(account, "impersonate", kind, "")


async def test_whatever_rights_it_is_given_it_writes_nothing_else(powerful: Thief, admin: Admin) -> None:
    """As one day by a binding that meant well."""
    words = "The portal writes Namespaces, and in those"
    settings = {"metadata": {"name": "settings"}, "data": {}}
    await powerful.refused("has not", "POST", f"{NAMESPACES}/kube-system/configmaps", settings)
    path, body = parts(SYSTEM)["secrets"]
    await admin.create(path, body)
    for method, change in (("DELETE", None), ("PATCH", {}), ("PATCH", {"metadata": {"labels": {"a": "b"}}})):
        await powerful.refused("has not", method, f"{path}/nb-thief", change)
    await admin.delete(f"{path}/nb-thief")
    node = {"metadata": {"name": "real"}}
    await powerful.refused("may not write nodes", "POST", "/api/v1/nodes", node)
    role = {"metadata": {"name": "all"}, "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}
    await powerful.refused(words, "POST", f"{RBAC}/clusterroles", role)
    everything = {**binding("cluster-admin"), "metadata": {"name": "portal-thief"}}
    await powerful.refused(words, "POST", f"{RBAC}/clusterrolebindings", everything)
    account = {"metadata": {"name": "thief"}}
    await powerful.refused("has not", "POST", f"{NAMESPACES}/kube-system/serviceaccounts", account)
    token = {"spec": {"expirationSeconds": 600}}
    path = f"{NAMESPACES}/{SYSTEM}/serviceaccounts/vkprovider/token"
    await powerful.refused(NO_TOKEN, "POST", path, token)
    await admin.create(*parts(CLASS)["pods"])
    for part in ("exec", "attach"):
        path = f"{NAMESPACES}/{CLASS}/pods/nb-thief/{part}?container=lab&command=x&stdout=true"
        await powerful.refused(f"may not write pods/{part}", "POST", path)
    apps = f"/apis/apps/v1/namespaces/{OWN}/deployments"
    labels = {"a": "b"}
    template = {"metadata": {"labels": labels}, "spec": pod()["spec"]}
    deployment = {"metadata": {"name": "a"}, "spec": {"selector": {"matchLabels": labels}, "template": template}}
    await powerful.refused("may not write deployments.apps", "POST", apps, deployment)
    lease = {"metadata": {"name": "vkprovider-portal-1"}, "spec": {}}
    leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
    await powerful.refused("in its own namespace", "POST", leases, lease)


async def test_who_makes_a_lab_needs_the_use_of_its_definition(
    apiserver: ApiServer, thief: Thief, admin: Admin
) -> None:
    """The portal needs it itself: no ServiceAccount of the lab's namespace has anything."""
    policy = str(find_manifests() / "components" / "require-use" / "policy.yaml")
    apiserver.kubectl("apply", "--server-side", "-f", policy)
    granted = f"{RBAC}/clusterrolebindings/vkprovider-portal-definitions"
    path, body = parts(OWN)["pods"]
    try:

        async def refused() -> bool:
            """By the policy, which knows of nobody but the portal."""
            try:
                await admin.request("POST", f"{path}?dryRun=All", body)
            except Refused as error:
                return f"ServiceAccount {OWN}/default may not use LabletDefinition {DEFINITION}" in str(error)
            return False

        await eventually(refused, "the policy")
        await thief.send("POST", f"{path}?dryRun=All", body)
        await admin.delete(granted)

        async def refused_too() -> bool:
            try:
                await thief.send("POST", f"{path}?dryRun=All", body)
            except Refused as error:
                return "ClusterRoleBinding vkprovider-portal-definitions" in str(error)
            return False

        await eventually(refused_too, "the portal is refused")
    finally:
        apiserver.kubectl("delete", "-f", policy)


async def test_no_tenant_makes_what_the_portal_takes_for_its_own(
    apiserver: ApiServer, thief: Thief, admin: Admin
) -> None:
    """A tenant who makes namespaces would hide the lab of a user, or get the user's token as that of a warm lab."""
    name = "portal-tenant"
    rules = [
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["create"]},
        {
            "apiGroups": [""],
            "resources": ["namespaces", "namespaces/status", "namespaces/finalize"],
            "resourceNames": ["tenant-a"],
            "verbs": ["get", "patch", "update"],
        },
    ]
    group = "rbac.authorization.k8s.io"
    ref = {"apiGroup": group, "kind": "ClusterRole", "name": name}
    account = {"kind": "ServiceAccount", "name": name, "namespace": SYSTEM}
    await admin.create(f"{NAMESPACES}/{SYSTEM}/serviceaccounts", {"metadata": {"name": name}})
    await admin.create(f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": rules})
    await admin.create(
        f"{RBAC}/clusterrolebindings", {"metadata": {"name": name}, "roleRef": ref, "subjects": [account]}
    )
    await eventually(
        lambda: admin.may(f"system:serviceaccount:{SYSTEM}:{name}", "create", "namespaces", ""), "the binding"
    )
    warm = namespace("tenant-warm-00000000ff", user="")
    warm["metadata"]["labels"]["vkprovider.io/warm"] = "netlab"
    words = "vkprovider-portal-mark.* marks the namespaces of user labs"
    async with await client_of(apiserver, name) as http:
        tenant = Thief(http)
        for made in (namespace("nublado-ann", user="ann"), namespace("tenant-b", user="ann"), warm):
            with pytest.raises(Refused, match=words):
                await tenant.send("POST", f"{NAMESPACES}?dryRun=All", made)
        await tenant.send("POST", NAMESPACES, namespace("tenant-a", user="", mark=""))
        with pytest.raises(Refused, match=words):
            await tenant.send("PATCH", f"{NAMESPACES}/tenant-a", {"metadata": {"labels": {MARK: SYSTEM}}})
        marked = {"metadata": {"labels": {MARK: SYSTEM, USER: "carol"}, "annotations": {USER: "carol"}}}
        with pytest.raises(Refused, match=words):
            await tenant.send("PATCH", f"{NAMESPACES}/tenant-a/status", marked)
        found = await tenant.send("GET", f"{NAMESPACES}/tenant-a")
        forged = {**found, "metadata": {**found["metadata"], "labels": {**found["metadata"]["labels"], MARK: SYSTEM}}}
        with pytest.raises(Refused, match=words):
            await tenant.send("PUT", f"{NAMESPACES}/tenant-a/finalize", forged)
        await tenant.send("PATCH", f"{NAMESPACES}/tenant-a/status", {"metadata": {"labels": {"a": "b"}}})
        found = await tenant.send("GET", f"{NAMESPACES}/tenant-a")
        await tenant.send("PUT", f"{NAMESPACES}/tenant-a/finalize", found)
        assert MARK not in (await tenant.send("GET", f"{NAMESPACES}/tenant-a"))["metadata"]["labels"]
        await tenant.send("PATCH", f"{NAMESPACES}/tenant-a", {"metadata": {"labels": {"a": "b"}}})
    await admin.request("POST", f"{NAMESPACES}?dryRun=All", namespace("nublado-ann", user="ann"))  # as a restore does
    await thief.send("POST", f"{NAMESPACES}?dryRun=All", namespace("nublado-ann", user="ann"))
