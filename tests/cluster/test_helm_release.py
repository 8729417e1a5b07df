"""A release of the chart on a cluster: as the kustomization installs, upgraded, uninstalled; and taken over from it."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.extra import ACCOUNT, Program, cmlworker, secret
from tests.support.helm import CHART, HELM, MISSING, SYSTEM, Helm
from tests.support.installation import MANIFESTS, WORKER, Installation
from tests.support.sandboxes import started

pytestmark = pytest.mark.skipif(HELM is None, reason=MISSING)

OVERLAY = str(MANIFESTS / "overlays" / "default")
RELEASE = ("vkprovider", str(CHART), f"--namespace={SYSTEM}")


def deployment(cluster: Installation) -> dict[str, Any]:
    return cluster.get("deployment", "vkprovider", f"--namespace={SYSTEM}")


def settings(**given: float) -> list[str]:
    return [f"--set=settings.{name}={value}" for name, value in given.items()]


@pytest.mark.timeout(600)
def test_life_of_a_release(tmp_path: Path) -> None:
    with started("helm", tmp_path / "sandbox", workers=0, provider=False) as sandbox:
        cluster = Installation(sandbox, tmp_path)
        helm = Helm(tmp_path, sandbox.kubeconfig)
        said = helm("install", *RELEASE, "--create-namespace", *settings(RECONCILE_INTERVAL=1, WORKER_PROBE_SECONDS=5))
        assert f"is installed in the namespace {SYSTEM}" in said
        assert "which names no registry" in said

        program = Program("--boot-seconds=0.2")
        try:
            cluster.apply(secret(WORKER, ACCOUNT, program.url), cmlworker(WORKER, program.url, environment="default"))
            cluster.run_deployment()  # with the ConfigMap of the chart
            cluster.wait_node()
            helm("upgrade", *RELEASE, *settings(RECONCILE_INTERVAL=1, WORKER_PROBE_SECONDS=2.5))
            written = cluster.get("configmap", "vkprovider-settings", f"--namespace={SYSTEM}")["data"]
            assert written == {"RECONCILE_INTERVAL": "1", "WORKER_PROBE_SECONDS": "2.5"}
            assert deployment(cluster)["metadata"]["generation"] == 2, "a changed setting replaces the replicas"
        finally:
            for replica in cluster.replicas:
                replica.end()
            program.close()

        helm("uninstall", "vkprovider", f"--namespace={SYSTEM}", "--wait")
        assert not deployment(cluster)
        assert cluster.get("cmlworker", WORKER)["spec"]["url"] == program.url
        assert cluster.get("namespace", SYSTEM)["status"]["phase"] == "Active"
        assert cluster.items("crd", "--selector=app.kubernetes.io/part-of=vkprovider")


@pytest.mark.timeout(600)
def test_release_takes_over_from_the_kustomization(tmp_path: Path) -> None:
    with started("helm-diff", tmp_path / "sandbox", workers=0, provider=False) as sandbox:
        cluster = Installation(sandbox, tmp_path)
        helm = Helm(tmp_path, sandbox.kubeconfig)
        cluster.kubectl("apply", "-k", OVERLAY)
        rendered = helm("template", *RELEASE)
        difference = sandbox.kubectl("diff", "-f", "-", input=rendered, check=False)
        assert (difference.stdout, difference.stderr, difference.returncode) == ("", "", 0)

        before = deployment(cluster)["metadata"]["generation"]
        assert "cannot be imported into the current release" in helm.refused("install", *RELEASE)
        helm("install", *RELEASE, "--take-ownership", "--force-conflicts")
        assert deployment(cluster)["metadata"]["generation"] == before, "no replica is replaced"
        assert helm("list", f"--namespace={SYSTEM}", "--short").strip() == "vkprovider"
