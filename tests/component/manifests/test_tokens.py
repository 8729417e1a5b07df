"""The table of tokens is what a real API server says of each account, and the policies refuse what it says they do."""

from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import aiohttp
import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from tests.component.controllers.looking import eventually
from tests.component.relay.conftest import install as install_relay
from tests.support.apiserver import LOGINS, SYSTEM, Admin, ApiServer
from tools import tokens
from vkprovider.platform.shipped import find_manifests

PLACES = (SYSTEM, LOGINS, "kube-node-lease", "kube-system", "default")
ROWS = tokens.rows()
BOUND = [row for row in ROWS if not row.role]
ACCOUNTS = sorted({row.account for row in ROWS})
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
Json = dict[str, Any]
Right = tuple[str, str, str, str]
"""Verb, group, resource and name."""


@pytest.fixture
async def clients(apiserver: ApiServer, admin: Admin) -> AsyncIterator[dict[str, aiohttp.ClientSession]]:
    """A client with the token of each account, and of one that nothing was bound to."""
    for name in ("mux", "portal", "workbench"):
        apiserver.kubectl("apply", "--server-side", "-k", str(find_manifests() / "components" / name))
    install_relay(apiserver)
    accounts = f"/api/v1/namespaces/{SYSTEM}/serviceaccounts"
    await admin.create(accounts, {"metadata": {"name": "nobody"}})
    default = "/api/v1/namespaces/default/serviceaccounts"  # a Pod needs one, which a controller makes
    has_one = await admin.get(f"{default}/default") is not None
    if not has_one:
        await admin.create(default, {"metadata": {"name": "default"}})
    async with AsyncExitStack() as stack:
        made = {}
        for account in (*ACCOUNTS, f"{SYSTEM}/nobody"):
            place, name = account.split("/")
            token = apiserver.kubectl("create", "token", name, f"--namespace={place}").strip()
            connector = aiohttp.TCPConnector(ssl=apiserver.client_tls())
            headers = {"Authorization": f"Bearer {token}"}
            session = aiohttp.ClientSession(apiserver.url, headers=headers, connector=connector)
            made[account] = await stack.enter_async_context(session)
        yield made
    await admin.delete(f"{accounts}/nobody")
    if not has_one:
        await admin.delete(f"{default}/default")


async def rights(client: aiohttp.ClientSession, place: str) -> set[Right]:
    """Return what the API server says that a token may do in a namespace."""
    async with client.post(REVIEWS, json={"spec": {"namespace": place}}) as answer:
        rules = (await answer.json())["status"]["resourceRules"]
    return {
        (verb, group, resource, name)
        for rule in rules
        for verb in rule["verbs"]
        for group in rule.get("apiGroups", [""])
        for resource in rule.get("resources", [])
        for name in rule.get("resourceNames") or [""]
    }


@pytest.mark.parametrize("account", ACCOUNTS)
async def test_a_token_may_do_what_the_table_says_and_nothing_else(
    clients: dict[str, aiohttp.ClientSession], account: str
) -> None:
    for place in PLACES:
        everybody = await rights(clients[f"{SYSTEM}/nobody"], place)
        told = {
            (verb, row.group, row.resource, row.name)
            for row in BOUND
            if row.account == account and row.where in {"", place}
            for verb in row.verbs
        }

        async def is_told(place: str = place, everybody: set[Right] = everybody, told: set[Right] = told) -> bool:
            return await rights(clients[account], place) - everybody == told - everybody

        await eventually(is_told, f"{account} may do in {place} what the table says")


def test_each_account_that_ships_has_its_rows() -> None:
    """And each binding to one: a file of manifests that is added is read as well."""
    home, accounts, bound, mounted = find_manifests(), set[str](), set[tuple[str, str]](), set[str]()
    for path in sorted(home.rglob("*.yaml")):
        if path.relative_to(home).parts[0] in {"examples", "helm"}:  # an admin's own; made of the others
            continue
        for body in filter(None, yaml.safe_load_all(path.read_text(encoding="utf-8"))):
            meta, kind, spec = body.get("metadata", {}), body.get("kind", ""), body.get("spec") or {}
            if kind == "ServiceAccount":
                accounts.add(f"{meta['namespace']}/{meta['name']}")
            elif kind in {"RoleBinding", "ClusterRoleBinding"}:
                subjects = (each for each in body["subjects"] if each["kind"] == "ServiceAccount")
                bound |= {(f"{each['namespace']}/{each['name']}", meta.get("namespace", "")) for each in subjects}
            elif "template" in spec and spec["template"]["spec"].get("automountServiceAccountToken", True):
                mounted.add(spec["template"]["spec"].get("serviceAccountName", "default"))
    assert accounts == set(ACCOUNTS)
    assert bound == {(row.account, row.where) for row in BOUND}
    assert mounted == {account.partition("/")[2] for account in accounts}


def test_no_token_reads_secrets_beside_its_own_purpose() -> None:
    """The keys of the portal, and the certificates of the pages, stand where nobody of ours may read Secrets."""
    reading = {
        (row.account, row.where, row.role, row.name)
        for row in ROWS
        if row.resource == "secrets" and {"get", "list", "watch"} & set(row.verbs)
    }
    provider = f"{SYSTEM}/vkprovider"
    copied = {(f"{SYSTEM}/vkprovider-portal", SYSTEM, "", f"vkprovider-workbench{each}") for each in ("", "-pull")}
    assert reading == {(provider, LOGINS, "", ""), (provider, "", "vkprovider-parameter-reader", ""), *copied}


def test_each_write_that_nothing_limits_is_defended() -> None:
    """By a line of security.md: docs/security.md, What a stolen token may do."""
    text = (find_manifests().parent / "docs" / "security.md").read_text(encoding="utf-8")
    section = text.partition("## What a stolen token may do")[2].partition("\n## ")[0]
    lines = {line.split("|")[1].strip(): line for line in section.splitlines() if line.startswith("| `")}
    for row in ROWS:
        if row.writes and not row.policies:
            assert f"`{row.resource.partition('/')[0]}`" in lines[f"`{row.account.partition('/')[2]}`"], row


def requested() -> str:
    """Return a request for a certificate, as a client makes it."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "admin")])
    made = x509.CertificateSigningRequestBuilder().subject_name(name).sign(generate_private_key(SECP256R1()), SHA256())
    return b64encode(made.public_bytes(Encoding.PEM)).decode()


CLIENTS = "kubernetes.io/kube-apiserver-client"
FOREIGN: dict[str, tuple[str, Json]] = {
    "nodes": ("/api/v1/nodes", {}),
    "runtimeclasses": ("/apis/node.k8s.io/v1/runtimeclasses", {"handler": "x"}),
    "certificatesigningrequests": (
        "/apis/certificates.k8s.io/v1/certificatesigningrequests",
        {"spec": {"request": requested(), "signerName": CLIENTS, "usages": ["client auth", "digital signature"]}},
    ),
    "leases": ("/apis/coordination.k8s.io/v1/namespaces/{}/leases", {"spec": {}}),
    "endpointslices": (
        "/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices",
        {"addressType": "IPv4", "endpoints": []},
    ),
    "resourcequotas": ("/api/v1/namespaces/{}/resourcequotas", {"spec": {"hard": {"pods": "1"}}}),
    "networkpolicies": ("/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies", {"spec": {"podSelector": {}}}),
    "configmaps": ("/api/v1/namespaces/{}/configmaps", {}),
    "secrets": ("/api/v1/namespaces/{}/secrets", {}),
    "serviceaccounts": ("/api/v1/namespaces/{}/serviceaccounts", {}),
    "serviceaccounts/token": (
        "/api/v1/namespaces/{}/serviceaccounts/default/token",
        {"metadata": {"name": "default"}, "spec": {}},
    ),
    "namespaces": ("/api/v1/namespaces", {}),
    "pods": ("/api/v1/namespaces/{}/pods", {"spec": {"containers": [{"name": "a", "image": "b"}]}}),
    "events": ("/api/v1/namespaces/{}/events", {"involvedObject": {"namespace": "default"}}),
    "rolebindings": (
        "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
        {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "vkprovider-learner"}},
    ),
}
"""Where each kind is created, and what an object of others needs."""


@pytest.mark.parametrize("account", [f"{SYSTEM}/vkprovider", f"{SYSTEM}/vkprovider-mux", f"{SYSTEM}/vkprovider-portal"])
async def test_what_the_table_says_is_kept_to_a_policy_is_refused_by_it(
    clients: dict[str, aiohttp.ClientSession], account: str
) -> None:
    """Each kind that the account may create, as an object that is nobody's of ours."""
    tried = 0
    for row in BOUND:
        if row.account != account or "create" not in row.verbs or not row.policies:
            continue
        path, body = FOREIGN[row.resource]
        sent = {"metadata": {"name": "of-others"}, **body}
        where = f"{path.format(row.where or 'default')}?dryRun=All"

        async def refused(where: str = where, sent: Json = sent, policy: str = row.policies[0]) -> bool:
            async with clients[account].post(where, json=sent) as answer:
                return answer.status == 403 and f"ValidatingAdmissionPolicy '{policy}'" in await answer.text()

        await eventually(refused, f"{row.resource} of others are refused to {account}")
        tried += 1
    assert tried >= 2
