"""A portal on a real API server, as the doctor finds it: each command that it names is run, and mends what it named."""

import base64
import json
import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.component.portal.harness import install
from tests.support import docs
from tests.support.apiserver import GROUP, Admin, ApiServer
from tests.support.doctor import examined
from tests.support.topologies import definition
from vkprovider.doctor.findings import Finding, Level
from vkprovider.platform.http.tls import self_signed

SYSTEM = "vkprovider-system"
CORE = f"/api/v1/namespaces/{SYSTEM}"
DEPLOYMENT = f"/apis/apps/v1/namespaces/{SYSTEM}/deployments/vkprovider-portal"
ABOUT = f"Deployment/{SYSTEM}/vkprovider-portal"
HUB = "campus-hub"
INGRESSES = f"/apis/networking.k8s.io/v1/namespaces/{SYSTEM}/ingresses"
REASONS = {
    "ProgramUnavailable",
    "CookieKeyMissing",
    "CertificateSelfMade",
    "NoAddress",
    "NobodyBound",
    "MenuEmpty",
}
"""What is wrong with a portal right after `kubectl apply -k manifests/components/portal`."""
BESIDE = {
    "SettingInvalid",
    "CertificateUnusable",
    "AddressPending",
    "PrefixDiffers",
    "QuotaTooSmall",
    "HubAway",
    "HubUnbound",
    "HubClosed",
}
PAGE = {"PageUnset", "PageUntrusted"}


@pytest.fixture
async def admin(apiserver: ApiServer) -> AsyncIterator[Admin]:
    install(apiserver)
    async with Admin(apiserver) as admin:
        yield admin
        await admin.wipe()
        await admin.delete(f"{INGRESSES}/labs")
        for kind in ("secrets", "configmaps"):
            for name in ("settings", "tls", "config"):
                await admin.delete(f"{CORE}/{kind}/vkprovider-portal-{name}")
        for name in ("portal-users", "portal-hub"):
            await admin.delete(f"/apis/rbac.authorization.k8s.io/v1/namespaces/{SYSTEM}/rolebindings/{name}")
        await admin.delete(f"/apis/networking.k8s.io/v1/namespaces/{SYSTEM}/networkpolicies/vkprovider-portal-hub")


async def findings(server: ApiServer, among: set[str] = REASONS | BESIDE) -> dict[str, Finding]:
    """Return what is said of the portal for some reasons, by the reason; each has its row in docs/why.md."""
    report = await examined(server.kubeconfig)
    found = {
        each.reason: each
        for each in report.findings
        if each.reason in among and "relay" not in each.object and "mux" not in each.object
    }
    assert all(docs.described(reason) for reason in found)
    return {str(reason): each for reason, each in found.items()}


def run(server: ApiServer, finding: Finding, folder: Path, **replaced: str) -> None:
    """Run the command that a finding names, in a shell, as an admin who copies it does."""
    command = finding.remedy.replace("; then ", " && ")
    for old, new in replaced.items():
        command = command.replace(old, new)
    path = f"{server.programs}:{os.environ['PATH']}"
    environ = {**os.environ, "KUBECONFIG": str(server.kubeconfig), "PATH": path}
    subprocess.run([shutil.which("sh") or "sh", "-euc", command], env=environ, cwd=folder, check=True, timeout=60)  # noqa: S603 (a remedy of ours)


async def test_each_command_that_is_named_mends_what_is_wrong(
    apiserver: ApiServer, admin: Admin, tmp_path: Path
) -> None:
    pair = self_signed(["labs.example.com"])
    await admin.create(f"{GROUP}/labletdefinitions", definition("netlab"))
    versions = {"versions": [{"version": "1.0.0", "digest": "d", "resources": {"cpu": "1", "memory": "1Gi"}}]}
    await admin.patch(f"{GROUP}/labletdefinitions/netlab/status", {"status": {"version": "1.0.0", **versions}})
    found = await findings(apiserver)
    assert found.keys() == REASONS
    down = found["ProgramUnavailable"]
    assert (down.level, down.object) == (Level.FAULT, ABOUT)
    assert down.message == "0 of 2 Pods are available: nobody gets a page or a lab"
    assert found["CookieKeyMissing"].level is Level.FAULT
    run(apiserver, found["CookieKeyMissing"], tmp_path)
    for name in ("tls.crt", "tls.key"):
        (tmp_path / name).write_bytes(pair)
    run(apiserver, found["CertificateSelfMade"], tmp_path)
    other = base64.b64encode(self_signed(["labs.example.com"])).decode()
    await admin.patch(f"{CORE}/secrets/vkprovider-portal-tls", {"data": {"tls.key": other}})
    run(apiserver, found["NobodyBound"], tmp_path)
    run(apiserver, found["MenuEmpty"], tmp_path)
    found = await findings(apiserver)
    assert found.keys() == {"ProgramUnavailable", "CertificateUnusable", "NoAddress"}
    assert "a key of another certificate" in found["CertificateUnusable"].message
    run(apiserver, found["CertificateUnusable"], tmp_path)
    await admin.create(INGRESSES, ingress())
    found = await findings(apiserver)
    assert found.keys() == {"ProgramUnavailable", "AddressPending"}
    assert found["AddressPending"].object == f"Ingress/{SYSTEM}/labs"
    await admin.patch(f"{INGRESSES}/labs/status", {"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}})
    await admin.patch(f"{DEPLOYMENT}/status", {"status": {"replicas": 2, "readyReplicas": 2, "availableReplicas": 2}})
    assert await findings(apiserver) == {}
    await admin.patch(f"{DEPLOYMENT}/status", {"status": {"replicas": 0, "readyReplicas": 0, "availableReplicas": 0}})


async def test_the_way_to_the_page_is_read_by_the_names_of_the_deployments(
    apiserver: ApiServer, admin: Admin, tmp_path: Path
) -> None:
    """As Helm's `tls.existingSecret` names the Secret; the command that is named mends what it says."""
    assert (await findings(apiserver, PAGE)).keys() == {"PageUnset"}
    url = {"VKPROVIDER_PORTAL_PROVIDER_URL": f"https://vkprovider.{SYSTEM}.svc:8082"}
    await admin.create(f"{CORE}/configmaps", config("settings", url))
    apiserver.kubectl("apply", "-f", str(docs.ROOT / "manifests" / "deployment" / "deployment.yaml"))
    try:
        [found] = (await findings(apiserver, PAGE)).values()
        assert (found.reason, found.object) == ("PageUntrusted", f"Secret/{SYSTEM}/vkprovider-tls")
        mount(apiserver, "my-tls")
        pem = self_signed([f"vkprovider.{SYSTEM}.svc"])
        for name in ("tls.crt", "tls.key", "ca.crt"):
            (tmp_path / name).write_bytes(pem)
        files = [f"--from-file={name}={tmp_path / name}" for name in ("tls.crt", "tls.key")]
        where = f"--namespace={SYSTEM}"
        apiserver.kubectl("create", "secret", "generic", "my-tls", where, "--type=kubernetes.io/tls", *files)
        [found] = (await findings(apiserver, PAGE)).values()
        assert found.object == f"Secret/{SYSTEM}/my-tls"
        assert "it has no ca.crt" in found.message
        run(apiserver, found, tmp_path)
        assert await findings(apiserver, PAGE) == {}
    finally:
        mount(apiserver, "vkprovider-tls")
        await admin.delete(f"{CORE}/secrets/my-tls")
        await admin.delete(DEPLOYMENT.removesuffix("-portal"))


def mount(server: ApiServer, name: str) -> None:
    """Have provider and portal mount this Secret for the certificate of the page."""
    for program, volume in (("vkprovider", "tls"), ("vkprovider-portal", "provider")):
        volumes = [{"name": volume, "secret": {"secretName": name}}]
        change = json.dumps({"spec": {"template": {"spec": {"volumes": volumes}}}})
        server.kubectl("patch", "deployment", program, f"--namespace={SYSTEM}", "-p", change)


async def test_a_secret_without_the_key_gets_it(apiserver: ApiServer, admin: Admin, tmp_path: Path) -> None:
    secret = {"metadata": {"name": "vkprovider-portal-settings"}, "stringData": {"VKPROVIDER_PORTAL_OIDC_NAME": "U"}}
    await admin.create(f"{CORE}/secrets", secret)
    run(apiserver, (await findings(apiserver))["CookieKeyMissing"], tmp_path)
    assert "CookieKeyMissing" not in await findings(apiserver)
    there = await admin.get(f"{CORE}/secrets/vkprovider-portal-settings")
    assert there is not None
    assert there["data"].keys() == {"VKPROVIDER_PORTAL_OIDC_NAME", "VKPROVIDER_PORTAL_COOKIE_KEY"}


async def test_what_keeps_replicas_from_starting_is_said(apiserver: ApiServer, admin: Admin) -> None:
    settings = {"VKPROVIDER_PORTAL_DURATION_SECONDS": "99999999"}
    await admin.create(f"{CORE}/configmaps", config("settings", settings))
    said = (await findings(apiserver))["SettingInvalid"]
    assert "VKPROVIDER_PORTAL_DURATION_SECONDS 99999999 is more than" in said.message
    path = f"{CORE}/configmaps/vkprovider-portal-settings"
    settings = {"VKPROVIDER_PORTAL_DURATION_SECONDS": "60", "VKPROVIDER_PORTAL_CONFIG": "/etc/vkprovider/portal/p.yaml"}
    await admin.patch(path, {"data": settings})
    said = (await findings(apiserver))["SettingInvalid"]
    assert (said.level, said.object) == (Level.FAULT, f"ConfigMap/{SYSTEM}/vkprovider-portal-config")
    await admin.create(f"{CORE}/configmaps", config("config", {"p.yaml": "sizes: [small]"}))
    assert "SettingInvalid" not in await findings(apiserver)


async def test_the_road_of_hub_md_leaves_nothing_but_the_hub_itself(
    apiserver: ApiServer, admin: Admin, tmp_path: Path
) -> None:
    """Its commands are run in their order; then the doctor misses the hub, which no step has installed here."""
    shim = tmp_path / "shim"
    shim.mkdir()
    (shim / "kubectl").symlink_to(apiserver.programs / "kubectl")
    environ = {**os.environ, "PATH": f"{shim}:{os.environ['PATH']}", "KUBECONFIG": str(apiserver.kubeconfig)}
    reader = docs.Reader(tmp_path, {**environ, "CLIENT_SECRET": "of the client"}, {"jhub": HUB})
    page = "docs/hub.md"
    reader.run(page, "2. The portal, and its certificate")
    reader.run(page, "4. Secrets: the service's token, the key of auth_state")
    found = await findings(apiserver)
    assert {"HubAway", "HubUnbound", "HubClosed", "NobodyBound"} < found.keys()
    assert found["HubAway"].level is Level.FAULT
    assert "no such Service" in found["HubAway"].message
    reader.run(page, "5. Who may, and the way to the hub")
    apiserver.kubectl("apply", "-f", str(policy_of_the_docs(tmp_path)))
    found = await findings(apiserver)
    assert found.keys() == {"ProgramUnavailable", "MenuEmpty", "HubAway"}, (
        "and no NoAddress: the hub's proxy leads here"
    )
    hub = yaml.safe_load((tmp_path / "hub-secrets.yaml").read_text())["hub"]
    secret = await admin.get(f"{CORE}/secrets/vkprovider-portal-settings")
    assert secret is not None
    told = base64.b64decode(secret["data"]["VKPROVIDER_PORTAL_HUB_TOKEN"]).decode()
    assert hub["services"]["vkprovider"]["apiToken"] == told
    assert len(bytes.fromhex(hub["config"]["CryptKeeper"]["keys"][0])) == 32
    space = f"/api/v1/namespaces/{HUB}"
    await admin.create(f"{space}/services", {"metadata": {"name": "hub"}, "spec": {"ports": [{"port": 8081}]}})
    assert "no Pod of the hub is ready" in (await findings(apiserver))["HubAway"].message
    endpoints = {
        "metadata": {"name": "hub-1", "labels": {"kubernetes.io/service-name": "hub"}},
        "addressType": "IPv4",
        "ports": [{"port": 8081}],
        "endpoints": [{"addresses": ["192.0.2.7"], "conditions": {"ready": True}}],
    }
    await admin.create(f"/apis/discovery.k8s.io/v1/namespaces/{HUB}/endpointslices", endpoints)
    assert "HubAway" not in await findings(apiserver)


async def test_what_a_hub_lacks_is_mended_by_the_command(apiserver: ApiServer, admin: Admin, tmp_path: Path) -> None:
    data = {
        "VKPROVIDER_PORTAL_HUB_API_URL": "http://hub.elsewhere:8081/hub/api",
        "VKPROVIDER_PORTAL_HUB_TOKEN": "not-a-secret-here",
        "VKPROVIDER_PORTAL_COOKIE_KEY": "A" * 43 + "=",
    }
    await admin.create(f"{CORE}/configmaps", config("settings", data))
    found = await findings(apiserver)
    assert "there is no such Service" in found["HubAway"].message
    run(apiserver, found["HubUnbound"], tmp_path)
    assert "HubUnbound" not in await findings(apiserver)
    outside = {"VKPROVIDER_PORTAL_HUB_API_URL": "https://example.com/hub/api"}
    await admin.patch(f"{CORE}/configmaps/vkprovider-portal-settings", {"data": outside})
    assert "HubAway" not in await findings(apiserver), "no namespace is named `com`"


def policy_of_the_docs(folder: Path) -> Path:
    """Write the NetworkPolicy of docs/hub.md to a file."""
    text = (docs.ROOT / "docs" / "hub.md").read_text()
    block = next(each for each in text.split("```") if each.startswith("yaml") and "kind: NetworkPolicy" in each)
    path = folder / "policy.yaml"
    path.write_text(block.removeprefix("yaml\n"))
    return path


def config(name: str, data: dict[str, str]) -> dict[str, Any]:
    return {"metadata": {"name": f"vkprovider-portal-{name}"}, "data": data}


def ingress() -> dict[str, Any]:
    backend = {"service": {"name": "vkprovider-portal", "port": {"name": "https"}}}
    path = {"path": "/", "pathType": "Prefix", "backend": backend}
    return {"metadata": {"name": "labs"}, "spec": {"rules": [{"host": "labs.example.com", "http": {"paths": [path]}}]}}
