"""A release of the chart on a cluster: as the kustomization installs, upgraded, uninstalled; and taken over from it."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.docs import Reader
from tests.support.engineer import INSTALL
from tests.support.extra import ACCOUNT, Program, cmlworker, secret
from tests.support.helm import CHART, HELM, MISSING, SYSTEM, Helm
from tests.support.installation import MANIFESTS, WORKER, Installation
from tests.support.sandboxes import started
from tests.support.waiting import until
from tools.helm.chart import semver
from vkprovider import __version__

pytestmark = pytest.mark.skipif(HELM is None, reason=MISSING)

OVERLAY = str(MANIFESTS / "overlays" / "default")
RELEASE = ("vkprovider", str(CHART), f"--namespace={SYSTEM}")


def deployment(cluster: Installation) -> dict[str, Any]:
    return cluster.get("deployment", "vkprovider", f"--namespace={SYSTEM}")


def replica_sets(cluster: Installation) -> list[str]:
    return [item["metadata"]["name"] for item in cluster.items("replicaset", f"--namespace={SYSTEM}")]


def is_observed(item: dict[str, Any]) -> bool:
    """Whether the controller of a Deployment has seen its spec as it is."""
    return bool(item["metadata"]["generation"] == item["status"].get("observedGeneration"))


def reader(cluster: Installation, home: Path, **own: str) -> Reader:
    """Somebody who follows the pages with this Helm, and puts in names of the own."""
    assert HELM
    path = [str(HELM.parent), str(cluster.sandbox.programs), os.environ["PATH"]]
    environ = {"PATH": os.pathsep.join(path), "KUBECONFIG": str(cluster.sandbox.kubeconfig), "HOME": str(home)}
    checkout = home / "checkout"
    checkout.mkdir()
    return Reader(checkout, environ, own)


def older_chart(folder: Path) -> Path:
    """Make a chart of before: its definition of workers has another short name, and it knows no value of prepull."""
    chart = folder / "older"
    shutil.copytree(CHART, chart)
    for name, new, old in (
        ("Chart.yaml", semver(__version__), "0.1.0"),
        ("templates/crds.yaml", "- cmlw\n", "- older\n"),
        ("values.yaml", "\nprepull:\n", "\nglobal:\n"),
    ):
        text = (chart / name).read_text()
        assert new in text
        (chart / name).write_text(text.replace(new, old))
    (chart / "templates" / "prepull.yaml").unlink()
    schema = json.loads((chart / "values.schema.json").read_text())
    del schema["properties"]["prepull"]
    (chart / "values.schema.json").write_text(json.dumps(schema))
    return chart


def short_names(cluster: Installation) -> list[str]:
    """The short names of workers that the API server serves."""
    names: list[str] = cluster.get("crd", "cmlworkers.vkprovider.io")["spec"]["names"]["shortNames"]
    return names


def settings(**given: float) -> list[str]:
    return [f"--set=settings.{name}={value}" for name, value in given.items()]


@pytest.mark.timeout(600)
def test_life_of_a_release(tmp_path: Path) -> None:
    with started("helm", tmp_path / "sandbox", workers=0, provider=False) as sandbox:
        cluster = Installation(sandbox, tmp_path)
        helm = Helm(tmp_path, sandbox.kubeconfig)
        page = reader(cluster, tmp_path, OLD_CHART=str(older_chart(tmp_path)))
        said = page.run(INSTALL, "With Helm")
        assert f"is installed in the namespace {SYSTEM}" in said
        assert "which names no registry" not in said
        [container] = deployment(cluster)["spec"]["template"]["spec"]["containers"]
        assert container["image"] == f"registry.example.com/vkprovider:{__version__}"
        labels = cluster.get("namespace", SYSTEM)["metadata"]["labels"]
        assert labels["pod-security.kubernetes.io/enforce"] == "restricted"

        program = Program("--boot-seconds=0.2")
        try:
            cluster.apply(secret(WORKER, ACCOUNT, program.url), cmlworker(WORKER, program.url, environment="default"))
            cluster.run_deployment()
            cluster.wait_node()
            said = helm(
                "upgrade", *RELEASE, "--reuse-values", *settings(RECONCILE_INTERVAL=1, WORKER_PROBE_SECONDS=2.5)
            )
            assert "which names no registry" not in said
            written = cluster.get("configmap", "vkprovider-settings", f"--namespace={SYSTEM}")["data"]
            assert written == {"RECONCILE_INTERVAL": "1", "WORKER_PROBE_SECONDS": "2.5"}
            assert deployment(cluster)["metadata"]["generation"] == 2, "a changed setting replaces the replicas"
            page.run("docs/upgrade.md", "Back to the older version")
            assert '"chart":"vkprovider-0.1.0"' in helm("list", f"--namespace={SYSTEM}", "--output=json")
            assert short_names(cluster) == ["cmlw"], "the newer definitions stay"
            assert cluster.get("configmap", "vkprovider-settings", f"--namespace={SYSTEM}")["data"] == written
            assert deployment(cluster)["metadata"]["generation"] == 2
            helm("upgrade", *RELEASE, "--reset-then-reuse-values", "--set=crds.install=true")
            assert short_names(cluster) == ["cmlw"]
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
        [before] = until(lambda: replica_sets(cluster), 30)
        assert "cannot be imported into the current release" in helm.refused("install", *RELEASE)
        said = reader(cluster, tmp_path).run(INSTALL, "From kubectl to Helm")  # `kubectl diff` fails if there is one
        assert "\ndiff " not in said
        assert "which names no registry" in said
        until(lambda: is_observed(deployment(cluster)), 30)
        assert replica_sets(cluster) == [before], "no replica is replaced"
        assert helm("list", f"--namespace={SYSTEM}", "--short").strip() == "vkprovider"
