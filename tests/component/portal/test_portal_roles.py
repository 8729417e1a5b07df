"""The roles of people at the portal, on the real API server: in the own lab, and the verbs that it asks for."""

from collections.abc import AsyncIterator

import aiohttp
import pytest

from tests.component.controllers.looking import eventually
from tests.support.apiserver import Admin, ApiServer
from vkprovider.platform.shipped import find_manifests

RBAC = "/apis/rbac.authorization.k8s.io/v1"
LAB, OTHER = "portal-lab-ann", "portal-lab-bob"
GROUP = "vkprovider.io"
PUPILS = ("students",)
WEBSOCKET = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Protocol": "v5.channel.k8s.io",
}
SPDY = {"Connection": "Upgrade", "Upgrade": "SPDY/3.1", "X-Stream-Protocol-Version": "v5.channel.k8s.io"}


async def bind(admin: Admin, role: str, subject: str, namespace: str = "", kind: str = "User") -> None:
    """Bind a ClusterRole to a user or a group, in a namespace or in the cluster."""
    group = "rbac.authorization.k8s.io"
    body = {
        "metadata": {"name": f"test-{role}"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": kind, "name": subject, "apiGroup": group}],
    }
    place = f"{RBAC}/namespaces/{namespace}/rolebindings" if namespace else f"{RBAC}/clusterrolebindings"
    await admin.create(place, body)


@pytest.fixture
async def admin(apiserver: ApiServer) -> AsyncIterator[Admin]:
    apiserver.kubectl("apply", "--server-side", "-f", str(find_manifests() / "components" / "portal" / "roles.yaml"))
    async with Admin(apiserver) as admin:
        for name in (LAB, OTHER):
            if await admin.get(f"/api/v1/namespaces/{name}") is None:
                await admin.create("/api/v1/namespaces", {"metadata": {"name": name}})
        yield admin
        for name in ("vkprovider-learner", "vkprovider-instructor", "vkprovider-class-learner"):
            await admin.delete(f"{RBAC}/namespaces/{LAB}/rolebindings/test-{name}")
        for name in ("vkprovider-portal-hub", "vkprovider-portal-user"):
            await admin.delete(f"{RBAC}/clusterrolebindings/test-{name}")


def listed(server: ApiServer, user: str, namespace: str) -> dict[str, set[str]]:
    """Return the verbs of a user by resource: `kubectl auth can-i --list`, without what everybody has."""
    text = server.kubectl("auth", "can-i", "--list", f"--as={user}", f"--namespace={namespace}", "--no-headers")
    found: dict[str, set[str]] = {}
    for line in text.splitlines():
        resource, verbs = line.split()[0], line[line.rindex("[") :].strip("[]").split()
        if not resource.startswith("[") and not resource.endswith(".k8s.io"):
            found.setdefault(resource, set()).update(verbs)
    return found


async def test_a_learner_works_in_the_own_lab_and_changes_no_pod(apiserver: ApiServer, admin: Admin) -> None:
    await bind(admin, "vkprovider-learner", "ann", LAB)

    async def granted() -> bool:
        return await admin.may("ann", "list", "pods", LAB)

    await eventually(granted, "the binding")
    assert listed(apiserver, "ann", LAB) == {
        "pods": {"get", "list", "watch"},
        "events": {"get", "list", "watch"},
        "pods/log": {"get"},
        "pods/attach": {"get", "create"},
        "pods/exec": {"get", "create"},
    }
    assert listed(apiserver, "ann", OTHER) == {}
    assert listed(apiserver, "ann", "default") == {}


@pytest.mark.parametrize("part", ["attach", "exec"])
async def test_a_learner_opens_a_console_by_either_protocol(apiserver: ApiServer, admin: Admin, part: str) -> None:
    """A request that is allowed comes as far as the Pod, which is missing."""
    await bind(admin, "vkprovider-learner", "ann", LAB)

    async def statuses(user: str) -> list[int]:
        path = f"{apiserver.url}/api/v1/namespaces/{LAB}/pods/none/{part}?container=r1&stdin=true&command=x"
        connector = aiohttp.TCPConnector(ssl=apiserver.admin_tls())
        found = []
        async with aiohttp.ClientSession(connector=connector, headers={"Impersonate-User": user}) as http:
            for method, protocol in (("GET", WEBSOCKET), ("POST", SPDY)):
                async with http.request(method, path, headers=protocol) as answer:
                    found.append(answer.status)
        return found

    async def open_to_ann() -> bool:
        return await statuses("ann") == [404, 404]

    await eventually(open_to_ann, "consoles are allowed")
    assert await statuses("bob") == [403, 403]


async def test_the_verbs_of_the_portal_are_given_by_its_roles_alone(admin: Admin) -> None:
    async def may(user: str, verb: str, namespace: str = "", groups: tuple[str, ...] = ()) -> bool:
        return await admin.may(user, verb, "userlabs", namespace, group=GROUP, groups=groups)

    await bind(admin, "vkprovider-portal-hub", "hub")
    await bind(admin, "vkprovider-portal-user", "students", kind="Group")
    await bind(admin, "vkprovider-instructor", "teacher", LAB)
    await bind(admin, "vkprovider-class-learner", "students", LAB, kind="Group")

    async def granted() -> bool:
        of_cluster = await may("hub", "manage") and await may("x", "use", "", PUPILS)
        return of_cluster and await may("teacher", "teach", LAB) and await may("x", "attend", LAB, PUPILS)

    await eventually(granted, "the bindings")
    verbs = {
        user: [verb for verb in ("manage", "use", "teach", "attend") if await may(user, verb, "", groups)]
        for user, groups in (("hub", ()), ("ann", PUPILS), ("bob", ()), ("teacher", ()))
    }
    assert verbs == {"hub": ["manage"], "ann": ["use"], "bob": [], "teacher": []}
    verbs_of_all = ("teach", "use", "manage", "attend")
    assert [await may("teacher", verb, LAB) for verb in verbs_of_all] == [True, False, False, False]
    assert [await may("ann", verb, LAB, PUPILS) for verb in verbs_of_all] == [False, True, False, True]
    assert not await may("teacher", "teach", OTHER)
    assert not await may("ann", "attend", OTHER, PUPILS)


async def test_the_hub_has_nothing_on_pods(apiserver: ApiServer, admin: Admin) -> None:
    await bind(admin, "vkprovider-portal-hub", "hub")

    async def granted() -> bool:
        return await admin.may("hub", "manage", "userlabs", "", group=GROUP)

    await eventually(granted, "the binding")
    for namespace in (LAB, OTHER, "default"):
        assert listed(apiserver, "hub", namespace) == {f"userlabs.{GROUP}": {"manage"}}
