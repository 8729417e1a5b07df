"""Objects for tests of decisions, and the API server's half of a strategic merge patch."""

import uuid
from random import Random
from typing import Any

import msgspec

from vkprovider.lablet import observations
from vkprovider.lablet.observations import DeviceFact
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.lablet.facts import Facts
from vkprovider.labs.pure.lablet.memory import Memory
from vkprovider.platform.objects import Pod

POD_UID = "11111111-2222-3333-4444-555555555555"
DEFINITION_UID = "0a1b2c3d-0000-0000-0000-000000000000"
DIGEST = "d" * 64


def pod(
    *,
    phase: str = "Pending",
    restart: str = "Always",
    deleted: bool = False,
    finalizers: tuple[str, ...] = (),
    annotations: dict[str, str] | None = None,
    deadline_s: int | None = None,
    containers: tuple[tuple[str, str], ...] = (("lab", "netlab:1.0"),),
    status: dict[str, Any] | None = None,
    **spec: Any,
) -> Pod:
    """Make a Pod as the API server would send it."""
    return msgspec.convert(
        {
            "metadata": {
                "name": "pod-1",
                "namespace": "team",
                "uid": POD_UID,
                "resourceVersion": "1",
                "generation": 1,
                "deletionTimestamp": "2026-01-01T00:00:00Z" if deleted else None,
                "finalizers": list(finalizers),
                "annotations": annotations or {},
            },
            "spec": {
                "containers": [{"name": name, "image": image} for name, image in containers],
                "nodeName": "vnode.w1",
                "runtimeClassName": "netlab",
                "restartPolicy": restart,
                "activeDeadlineSeconds": deadline_s,
                **spec,
            },
            "status": {"phase": phase, **(status or {})},
        },
        Pod,
    )


def claim(**fields: Any) -> Claim:
    """Make the row of `pod()`."""
    row = {
        "podUID": POD_UID,
        "namespace": "team",
        "pod": "pod-1",
        "definition": "netlab",
        "definitionUID": DEFINITION_UID,
        "version": "1.0",
        "digest": DIGEST,
    }
    return msgspec.structs.replace(msgspec.convert(row, Claim), **fields)


def devices(*states: str) -> tuple[DeviceFact, ...]:
    """Make the devices r1, r2, … in these states."""
    return tuple(DeviceFact(f"n{i}", f"r{i + 1}", "iosv", state) for i, state in enumerate(states))


_REMEMBERED = {field.name for field in msgspec.structs.fields(Memory)} - {"extracted", "gone_confirmed"}


def facts_with(**known: Any) -> Facts:
    """Make facts; the names of memory's fields go into the memory."""
    memory = Memory(**{name: value for name, value in known.items() if name in _REMEMBERED})
    return Facts(memory=memory, **{name: value for name, value in known.items() if name not in _REMEMBERED})


BOOTED = (observations.BOOTED, observations.BOOTED)

_MERGE_KEYS = {"conditions": "type", "podIPs": "ip", "hostIPs": "ip"}
"""Lists of a Pod's status that merge by a key; `containerStatuses` and the others are replaced whole."""


def apply_strategic(current: Any, patch: Any, *, field: str = "") -> Any:
    """Apply a strategic merge patch to plain JSON as the API server does to a Pod."""
    if isinstance(patch, dict):
        merged = dict(current) if isinstance(current, dict) else {}
        for key, value in patch.items():
            if value is None:
                merged.pop(key, None)
            else:
                merged[key] = apply_strategic(merged.get(key), value, field=key)
        return merged
    if not isinstance(patch, list) or field not in _MERGE_KEYS:
        return patch
    items = [item for item in patch if item != {"$patch": "replace"}]
    if len(items) < len(patch):
        return items
    key = _MERGE_KEYS[field]
    result = [dict(item) for item in current or []]
    for item in items:
        same = [i for i, old in enumerate(result) if old[key] == item[key]]
        if same:
            result[same[0]] = apply_strategic(result[same[0]], item)
        else:
            result.append({k: v for k, v in item.items() if v is not None})
    return result


def apply_merge(current: Any, patch: Any) -> Any:
    """Apply a JSON merge patch (RFC 7396)."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(current) if isinstance(current, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = apply_merge(merged.get(key), value)
    return merged


def patched(pod: Pod, patch: dict[str, Any]) -> Pod:
    """Give the Pod as it is after the patch; a patch for another UID is refused."""
    assert patch["metadata"]["uid"] == pod.metadata.uid
    return msgspec.convert(apply_strategic(msgspec.to_builtins(pod), patch), Pod)


def many_claims(count: int) -> dict[str, Claim]:
    """Make rows with a port each, and with names, ids and times that do not repeat, as those of real Pods do not."""
    dice = Random(1)
    found = {}
    for i in range(count):
        uid, lab_id = (str(uuid.UUID(int=dice.getrandbits(128), version=4)) for _ in range(2))
        found[uid] = claim(
            pod_uid=uid,
            pod=f"netlab-7d9c5b8f6-{''.join(dice.choices('bcdfghjklmnpqrstvwxz2456789', k=5))}",
            lab_id=lab_id,
            started_at=1_800_000_000 + dice.randrange(1000),
            ready_at=1_800_001_000 + dice.randrange(1000),
            ports={"workstation_serial": 10_000 + i},
        )
    return found
