"""An admin looks at the portal as a user, by the headers of Kubernetes, which the API server judges (R002-011)."""

from collections.abc import AsyncIterator

import httpx
import pytest

from tests.component.controllers.looking import eventually
from tests.component.portal.asking import SPAWNER, Setting, setting
from tests.component.portal.harness import PortalWorld
from tests.component.portal.people import RBAC
from tests.support.apiserver import SYSTEM

ACCOUNT = f"system:serviceaccount:{SYSTEM}:vkprovider-portal"
EXTRAS = {"vkprovider.io%2fuid": "1001", "vkprovider.io%2fgid": "2001", "vkprovider.io%2fgroups": "net:2001"}


@pytest.fixture
async def has(world: PortalWorld) -> AsyncIterator[Setting]:
    """A portal with alice, and with root, who may impersonate her and the extras of a token."""
    async with setting(world) as made:
        name = f"looks-{made.people.namespace}"
        extras = [f"userextras/vkprovider.io/{each}" for each in ("uid", "gid", "groups")]
        kinds = [
            {"apiGroups": [""], "resources": ["serviceaccounts"], "verbs": ["impersonate"], "resourceNames": ["alice"]},
            {"apiGroups": ["authentication.k8s.io"], "resources": extras, "verbs": ["impersonate"]},
        ]
        role, bound = f"{RBAC}/clusterroles", f"{RBAC}/clusterrolebindings"
        await world.admin.create(role, {"metadata": {"name": name}, "rules": kinds})
        account = {"kind": "ServiceAccount", "name": "root", "namespace": made.people.namespace}
        ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
        await world.admin.create(bound, {"metadata": {"name": name}, "roleRef": ref, "subjects": [account]})
        try:
            yield made
        finally:
            await world.admin.delete(f"{bound}/{name}")
            await world.admin.delete(f"{role}/{name}")


async def test_who_may_impersonate_a_user_is_that_user_and_a_log_says_who_it_was(
    has: Setting, capfd: pytest.CaptureFixture[str]
) -> None:
    """R002-011, R002-014: also for a creation; and what the token says of uid, gid and groups is in the status."""
    root, alice = await has.people.person("root"), f"{has.people.prefix}alice"
    as_alice = {**root, "Impersonate-User": alice}
    assert (await has.client.ask("GET", "/user-status", root)).status_code == 403, "root alone has no lab"
    with_extras = {**as_alice, **{f"Impersonate-Extra-{key}": value for key, value in EXTRAS.items()}}

    async def looks() -> bool:
        return (await has.client.ask("GET", "/user-status", with_extras)).status_code == 404

    await eventually(looks, "the right to impersonate counts")
    assert (await has.client.ask("POST", "/labs/alice/create", with_extras, has.body())).status_code == 303
    await has.known("running")
    status = (await has.client.ask("GET", "/user-status", as_alice)).json()
    assert (status["uid"], status["gid"], status["groups"]) == (1001, 2001, [{"name": "net", "id": 2001}])
    assert (await has.client.follow("alice", as_alice))[-1] == ("complete", "complete")
    out, err = capfd.readouterr()
    assert f"by={has.people.prefix}root" in (out + err).replace("'", "")
    assert "acts as another user" in out + err


async def test_who_may_not_impersonate_is_refused_by_the_api_server(has: Setting, world: PortalWorld) -> None:
    """The portal has no right of its own to it, and asks with the caller's token alone."""
    alice = {"Impersonate-User": f"{has.people.prefix}alice"}
    refused = await has.client.ask("GET", "/user-status", {**has.hub, **alice})
    assert refused.status_code == 403
    [why] = refused.json()["detail"]
    assert why["msg"].startswith("you may not act as this user: ")
    assert "impersonate" in why["msg"]
    root = await has.people.person("root")
    for headers in ({"Impersonate-User": f"{has.people.prefix}hub"}, {"Impersonate-Group": "students"}):
        answer = await has.client.ask("GET", "/user-status", {**root, **headers})
        assert answer.status_code == 403, headers
    nobody = await has.client.ask("GET", "/user-status", alice)
    assert nobody.status_code == 401
    for resource in ("users", "groups", "serviceaccounts"):
        assert not await world.admin.may(ACCOUNT, "impersonate", resource, "")


async def test_who_may_act_as_a_user_in_reviews_alone_is_not_that_user_here(has: Setting, world: PortalWorld) -> None:
    """The API server answers the SelfSubjectReview of such a caller, where it knows such narrow rights (KEP-5284)."""
    narrow, name = await has.people.person("narrow"), f"narrow-{has.people.namespace}"
    group = ["authentication.k8s.io"]
    rules = [
        {"apiGroups": group, "resources": ["serviceaccounts"], "verbs": ["impersonate:serviceaccount"]},
        {"apiGroups": group, "resources": ["selfsubjectreviews"], "verbs": ["impersonate-on:serviceaccount:create"]},
    ]
    account = {"kind": "ServiceAccount", "name": "narrow", "namespace": has.people.namespace}
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    bound = {"metadata": {"name": name}, "roleRef": ref, "subjects": [account]}
    await world.admin.create(f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": rules})
    await world.admin.create(f"{RBAC}/clusterrolebindings", bound)
    as_alice = {**narrow, "Impersonate-User": f"{has.people.prefix}alice"}

    async def stopped_here() -> bool:
        answer = await has.client.ask("GET", "/user-status", as_alice)
        assert answer.status_code == 403
        return "may not impersonate" in answer.json()["detail"][0]["msg"]

    try:
        await eventually(stopped_here, "the API server lets the review pass, and the portal stops it")
    finally:
        await world.admin.delete(f"{RBAC}/clusterrolebindings/{name}")
        await world.admin.delete(f"{RBAC}/clusterroles/{name}")


async def test_behind_an_ingress_nobody_acts_as_another_user(world: PortalWorld) -> None:
    given = {"VKPROVIDER_PORTAL_CALLERS": "headers", "VKPROVIDER_PORTAL_INGRESS_SECRET": "a-secret-of-the-ingress"}
    running = await world.replica(**given)  # type: ignore[arg-type]  # (settings alone)
    headers = {"X-Portal-Ingress-Secret": "a-secret-of-the-ingress", "X-Auth-Request-User": "alice"}
    url = f"http://127.0.0.1:{running.page.port}{SPAWNER}/user-status"
    async with httpx.AsyncClient() as http:
        answer = await http.get(url, headers={**headers, "Impersonate-User": "bob"})
    assert (answer.status_code, "nobody acts as another user" in answer.text) == (403, True)
