"""Argo CD's health of our custom resources: the shipped script, run by a real Lua on what the provider writes."""

import subprocess
from pathlib import Path
from typing import Any

import lupa
import pytest
import yaml

from vkprovider.lablet.reasons import DefinitionReason, WorkerReason
from vkprovider.platform import wellknown
from vkpsandbox.controlplane.build import find_kubectl
from vkpsandbox.errors import SandboxError

PATH = Path(__file__).parents[2] / "manifests" / "argocd" / "health.yaml"
HEALTH: dict[str, str] = yaml.safe_load(PATH.read_text())["data"]
PREFIX = f"resource.customizations.health.{wellknown.GROUP}_"
REASONS = sorted({each.value for each in (*WorkerReason, *DefinitionReason)})


def health(status: dict[str, Any] | None, kind: str = "CMLWorker", **metadata: Any) -> tuple[str, str]:
    """Evaluate an object as Argo CD does: the script sees it as the global `obj`."""
    lua = lupa.LuaRuntime(unpack_returned_tuples=True)
    item = {"kind": kind, "metadata": {"name": "a", "generation": 2, **metadata}}
    if status is not None:
        item["status"] = status
    lua.globals().obj = lua.table_from(item, recursive=True)
    found = lua.execute(HEALTH[PREFIX + kind])
    return found["status"], found["message"]


def ready(status: str, reason: str, generation: int = 2) -> dict[str, Any]:
    conditions = [
        {"type": "PortsOpen", "status": "False", "reason": "Other", "message": "of ports"},
        {"type": "Ready", "status": status, "reason": reason, "message": "said so"},
        {"type": "TransportInsecure", "status": "True", "reason": "Other", "message": "of transport"},
    ]
    return {"observedGeneration": generation, "conditions": conditions}


def test_patch_is_merged_into_the_configmap(tmp_path: Path) -> None:
    """As kubectl reads the file; the rest of Argo CD's settings stays."""
    try:
        kubectl = find_kubectl()
    except SandboxError as error:
        pytest.skip(str(error))
    meta = {"name": "argocd-cm", "namespace": "argocd"}
    theirs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"url": "https://argocd.example.com"}}
    (tmp_path / "cm.yaml").write_text(yaml.safe_dump(theirs))
    command = [
        str(kubectl),
        "patch",
        "--local",
        "--output=yaml",
        "-f",
        str(tmp_path / "cm.yaml"),
        f"--patch-file={PATH}",
    ]
    merged = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout  # noqa: S603 (kubectl)
    assert yaml.safe_load(merged)["data"] == {**theirs["data"], **HEALTH}  # type: ignore[dict-item]


def test_both_kinds_are_judged_alike() -> None:
    assert set(HEALTH) == {f"{PREFIX}CMLWorker", f"{PREFIX}LabletDefinition"}
    assert len(set(HEALTH.values())) == 1
    assert health(ready("True", "ContentReady"), "LabletDefinition") == ("Healthy", "ContentReady: said so")


@pytest.mark.parametrize("status", [None, {}, ready("True", "WorkerReady", generation=1)])
def test_unseen_object_is_progressing(status: dict[str, Any] | None) -> None:
    said = health(status)
    assert said[0] == "Progressing"
    assert said[1].startswith("waits for the provider")


@pytest.mark.parametrize("reason", REASONS)
def test_object_that_is_not_ready_says_why(reason: str) -> None:
    wanted = {"Starting": "Progressing", "AwaitingApproval": "Suspended"}.get(reason, "Degraded")
    assert health(ready("False", reason)) == (wanted, f"{reason}: said so")


def test_reasons_that_the_script_names_exist() -> None:
    assert {"Starting", "AwaitingApproval"} <= set(REASONS)


def test_deletion_that_waits_for_lablets_is_progressing() -> None:
    deleted = health(ready("False", "InUse"), deletionTimestamp="2026-01-01T00:00:00Z")
    assert deleted == ("Progressing", "InUse: said so")
