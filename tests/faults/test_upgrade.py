"""An upgrade with running lablets, replica by replica, and the way back: nothing is restarted, nothing turns not Ready.

The older version is a revision from the history of this repository: that of the environment variable UPGRADE_FROM, else
the last tag, else the oldest revision whose custom resources have the fields of today's. It runs with the libraries of
this environment.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.support.cluster import Cluster, condition
from tests.support.docs import ROOT
from tests.support.doctor import examine
from tests.support.replicas import MEMBERS, Replicas, restarts, since_ready
from tests.support.topologies import definition, deployment
from tests.support.waiting import until
from vkprovider import __version__
from vkpsandbox import Sandbox

WORKERS, LABLETS = 4, 12
OLDER = "0.0.1-older"
"""What the older version calls itself, for between two releases both have one number."""
CRDS = "manifests/crds"


class Calm(NamedTuple):
    """What an upgrade must not change: since when lablets and Nodes are Ready, and what was done in CML."""

    lablets: dict[str, str]
    nodes: dict[str, str]
    commands: dict[str, dict[str, int]]


def git(*arguments: str) -> str:
    """Ask the repository of the checkout; empty if it refuses."""
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False).stdout  # noqa: S603, S607 (git)


def fields(revision: str) -> set[str]:
    """Name every field of the custom resources of a revision."""
    found: set[str] = set()
    for name in git("ls-tree", "--name-only", f"{revision}:{CRDS}").split():
        definition_ = yaml.safe_load(git("show", f"{revision}:{CRDS}/{name}"))
        if definition_["kind"] == "CustomResourceDefinition":
            [version] = definition_["spec"]["versions"]
            found |= {f"{name} {path}" for path in paths(version["schema"]["openAPIV3Schema"])}
    return found


def paths(schema: dict[str, Any], prefix: str = "") -> Iterator[str]:
    for name, each in schema.get("properties", {}).items():
        yield prefix + name
        yield from paths(each, f"{prefix}{name}.")
    if "items" in schema:
        yield from paths(schema["items"], f"{prefix}[].")


def older_revision() -> str:
    """Find the older version; empty, or today's, in a clone without history."""
    named = os.environ.get("UPGRADE_FROM") or git("describe", "--tags", "--abbrev=0", "HEAD^").strip()
    if named:
        return named
    today, oldest = fields("HEAD"), ""
    for revision in git("log", "--format=%H", "--", CRDS).split():
        if fields(revision) != today:
            break
        oldest = revision
    return oldest


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The older version, unpacked."""
    revision = older_revision()
    folder = tmp_path_factory.mktemp("older")
    packed = folder / "older.tar"
    git("archive", f"--output={packed}", revision, "vkprovider", "tunnels", "manifests")
    if not packed.is_file() or not git("diff", "--name-only", revision, "HEAD", "--", "vkprovider").strip():
        pytest.skip(f"this checkout has no older revision ({revision or 'none found'}): fetch its whole history")
    subprocess.run(["tar", "-xf", packed, "-C", folder], check=True)  # noqa: S603, S607 (tar)
    names_itself = folder / "vkprovider" / "__init__.py"
    names_itself.write_text(re.sub(r'(?m)^__version__ = ".*"$', f'__version__ = "{OLDER}"', names_itself.read_text()))
    command = [sys.executable, "-P", "-c", "import vkprovider; print(vkprovider.__file__, vkprovider.__version__)"]
    environ = {**os.environ, "PYTHONPATH": str(folder)}
    imported = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)  # noqa: S603 (Python)
    assert imported.stdout.startswith(f"{folder}/"), "the sandbox would run the present version"
    assert imported.stdout.endswith(f" {OLDER}\n")
    sys.stdout.write(f"older version: {git('log', '-1', '--format=%h of %ci, %s', revision)}")
    return folder


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory, older: Path) -> Iterator[Sandbox]:
    """Two replicas of the older version, four simulated workers."""
    with Sandbox.up(
        "upgrade",
        directory=tmp_path_factory.mktemp("upgrade"),
        workers=WORKERS,
        replicas=2,
        provider_env={"PYTHONPATH": str(older)},
        tied=True,
    ) as made:
        yield made


def apply(cluster: Cluster, manifests: Path) -> None:
    """Apply custom resource definitions first, then rights and policies, as docs/upgrade.md says."""
    for part in ("crds", "base"):
        how = ("--server-side", "--force-conflicts", "--field-manager=vkprovider-sandbox")
        cluster.kubectl("apply", *how, "-k", str(manifests / part))


def calm(cluster: Cluster, replicas: Replicas, uids: set[str]) -> Calm:
    pods = [pod for pod in cluster.items("/api/v1/pods") if pod["metadata"]["uid"] in uids]
    assert {pod["metadata"]["uid"] for pod in pods} == uids
    assert restarts(pods) == {0}
    nodes = {n["metadata"]["name"]: condition(n, "Ready")["lastTransitionTime"] for n in cluster.items("/api/v1/nodes")}
    seen = {what: {uid: times[uid] for uid in uids} for what, times in replicas.commands_seen().items()}
    return Calm(since_ready(pods), nodes, seen)


def replace(replicas: Replicas, leaving: str, arriving: list[str]) -> None:
    """End a replica as a kubelet does, and see that those that arrived have their share."""
    replicas.sandbox.stop(leaving, grace_s=30)
    until(replicas.is_balanced, 120, f"after the end of {leaving}")
    owners = set(replicas.owners().values())
    assert {replicas.identity(process) for process in arriving} <= owners


def test_upgrade_and_rollback_disturb_no_lablet(cluster: Cluster, replicas: Replicas, older: Path) -> None:
    apply(cluster, older / "manifests")
    cluster.define(definition("upgrade"))
    cluster.apply(deployment("upgrade", "upgrade", LABLETS))
    uids = {pod["metadata"]["uid"] for pod in cluster.wait_ready("default", LABLETS)}
    until(lambda: replicas.all_ready_in_claims(uids), 60)
    before = calm(cluster, replicas, uids)
    assert "VersionsDiffer" not in {finding.reason for finding in examine(cluster).findings}

    apply(cluster, ROOT / "manifests")
    replicas.add(3)
    until(replicas.is_balanced, 120, "two versions share the Nodes")
    assert len(set(replicas.owners().values())) == 3
    said = {lease["metadata"]["annotations"].get("vkprovider.io/version", "") for lease in cluster.items(MEMBERS)}
    assert said in ({OLDER, __version__}, {"", __version__}), "one that is very old does not say it"
    assert "VersionsDiffer" in {finding.reason for finding in examine(cluster).findings}
    cluster.kubectl("scale", "deployment/upgrade", f"--replicas={2 * LABLETS}")
    both = {pod["metadata"]["uid"] for pod in cluster.wait_ready("default", 2 * LABLETS)}
    until(lambda: replicas.all_ready_in_claims(both), 60)
    assert calm(cluster, replicas, uids) == before

    shared = calm(cluster, replicas, both)
    replace(replicas, "provider-1", ["provider-3"])
    replicas.add(4)
    until(replicas.is_balanced, 120, "the second replica of the new version")
    replace(replicas, "provider-2", ["provider-3", "provider-4"])
    until(replicas.all_nodes_ready, 60)
    assert calm(cluster, replicas, both) == shared, "by the upgrade"

    for back, leaving in (("provider-1", "provider-3"), ("provider-2", "provider-4")):
        replicas.sandbox.start(back)
        until(replicas.is_balanced, 120, f"{back} is back")
        replace(replicas, leaving, [back])
    assert calm(cluster, replicas, both) == shared, "by the way back"
    epochs = sum(epoch for _, epoch in replicas.epochs().values())
    sys.stdout.write(
        f"lablets {len(both)}, restarts 0, Ready flips 0, moves of {WORKERS} Nodes between replicas {epochs}\n"
    )

    cluster.kubectl("delete", "deployment/upgrade")
    cluster.wait_gone("default")
    assert {lab["lab_title"] for worker in cluster.workers for lab in worker.labs()} == set()
