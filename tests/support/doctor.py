"""`vkprovider doctor` as tests ask it: in this process, for one object."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.support.cluster import Cluster
from tests.support.docs import described
from tests.support.waiting import until
from vkprovider.cli.checkup.gather import Doctor
from vkprovider.doctor.findings import DoctorReport, Finding, Level
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.settings import KubeSettings
from vkprovider.platform.shipped import find_manifests
from vkpsandbox.controlplane.content import NAMESPACE


async def examined(kubeconfig: Path, *, namespace: str = NAMESPACE, probe: bool = False) -> DoctorReport:
    """Examine the installation of a namespace as a kubeconfig's user."""
    kube = await KubeClient.connect(KubeSettings(kubeconfig=str(kubeconfig)))
    try:
        manifest = (find_manifests() / "base" / "rbac.yaml").read_text()
        return await Doctor(kube, context="test", namespace=namespace, manifest=manifest, probe=probe).examine()
    finally:
        await kube.close()


def examine(cluster: Cluster, *, probe: bool = True) -> DoctorReport:
    """Examine the sandbox as its admin; whatever is found to be wrong must have its row in docs/why.md."""
    with ThreadPoolExecutor(1) as thread:  # a loop of its own, which leaves pytest's alone
        report = thread.submit(asyncio.run, examined(cluster.sandbox.kubeconfig, probe=probe)).result()
    assert [finding for finding in report.findings if not described(finding.reason)] == []
    return report


def faults_of(cluster: Cluster, about: str) -> list[Finding]:
    """Give the faults of the objects whose `Kind/name` begins so."""
    return [f for f in examine(cluster).findings if f.object.startswith(about) and f.level is Level.FAULT]


def diagnosed(cluster: Cluster, about: str, reason: str, within_s: float = 15) -> Finding:
    """Wait until the doctor prints exactly one line about an object, with this reason and a remedy; give it."""

    def line() -> Finding:
        found = faults_of(cluster, about)
        assert [f.reason for f in found] == [reason], found
        return found[0]

    finding = until(line, within_s)
    assert finding.remedy, finding
    assert "\n" not in finding.line
    return finding


def healthy(cluster: Cluster, about: str, within_s: float = 15) -> None:
    """Wait until the doctor finds no fault of an object."""
    until(lambda: not faults_of(cluster, about), within_s, f"the doctor still finds a fault of {about}")
