"""Statuses of custom resources: what is stored of them, and what is read of any that is found."""

from typing import Any

import pytest

from vkprovider.lablet.models.crd import structural
from vkprovider.lablet.models.status import (
    DefinitionStatus,
    LabCounts,
    ResourceCondition,
    Status,
    WorkerStatus,
    definition_status,
    stored,
    worker_status,
)
from vkprovider.platform.objects import CustomResource, Metadata

READY = ResourceCondition("Ready", "True", "WorkerReady", "", last_transition_time="2026-01-01T00:00:00Z")


def resource(status: dict[str, Any]) -> CustomResource:
    return CustomResource(Metadata("w"), {}, status)


def test_what_is_not_known_is_not_stored() -> None:
    """So that it stays as it is: a refused worker keeps its version and its labs."""
    assert stored(WorkerStatus([READY], 3, owner="r", epoch=0)) == {
        "conditions": [
            {
                "type": "Ready",
                "status": "True",
                "reason": "WorkerReady",
                "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }
        ],
        "observedGeneration": 3,
        "owner": "r",
        "epoch": 0,
    }


def test_status_is_read_as_it_was_stored() -> None:
    written = WorkerStatus([READY], 3, "vnode.w", "2.9.1", ["url https://x"], "r", 4, LabCounts(1, 2))
    read = worker_status(resource(stored(written)))
    assert read == written
    assert read.is_ready
    assert read.condition("PortsOpen") is None


@pytest.mark.parametrize(
    "found",
    [{}, {"later": 1}, {"conditions": 7}, {"labs": "many"}, {"conditions": [{"type": "Ready"}]}, {"devices": {}}],
)
def test_any_other_status_is_an_empty_one(found: dict[str, Any]) -> None:
    """One that was never written, of a later release, or edited while the CRD was another."""
    for status in (worker_status(resource(found)), definition_status(resource(found))):
        assert status == type(status)()
        assert not status.is_ready


@pytest.mark.parametrize("kind", [WorkerStatus, DefinitionStatus])
def test_schema_demands_and_invents_nothing(kind: type[Status]) -> None:
    """The API server would write a default into a status, and refuse one that an older release wrote."""

    def walk(schema: Any, path: str) -> None:
        assert "default" not in schema, path
        assert "required" not in schema or path.endswith("conditions[]"), path
        assert not {"$ref", "title"} & schema.keys(), path
        assert "type" in schema, path
        for name, inner in schema.get("properties", {}).items():
            walk(inner, f"{path}.{name}")
        for part in ("items", "additionalProperties"):
            if part in schema:
                walk(schema[part], f"{path}[]")

    walk(structural(kind), "status")
