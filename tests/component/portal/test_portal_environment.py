"""The environment of a lab arrives: ConfigMap, Secret, the Pod that refers to them, the provider's right to read."""

import base64
from typing import Any

from tests.component.controllers.looking import eventually
from tests.component.portal.asking import setting
from tests.component.portal.harness import MARK, PortalWorld
from tests.support.apiserver import SYSTEM
from vkprovider.portal.pure.record import LabRequest, annotations_for, labels_for

PROVIDER = f"system:serviceaccount:{SYSTEM}:vkprovider"
ASKS = [{"name": "SEAT", "type": "integer", "help": "The number on your desk."}, {"name": "VPN_KEY", "default": "k-1"}]


async def test_request_form_and_settings_reach_the_pod(world: PortalWorld) -> None:
    """R002-056 to R002-058: what is secret by its name is in the Secret, all else in the ConfigMap; nothing twice."""
    config = {"env": {"SITE": "campus-1", "A": "of the settings"}}
    async with setting(world, config=config) as has:
        asks = await world.define(parameters=ASKS)
        options = {"image_list": [f"{asks}:1.0.0"], "size": ["small"], "enable_debug": ["true"]}
        body: dict[str, Any] = {"options": options, "env": {"HUB_TOKEN": "t-1", "A": "of the request", "B": "b"}}
        answer = await has.client.ask("POST", "/labs/alice/create", has.alice, body)
        assert answer.status_code == 422
        [why] = answer.json()["detail"]
        assert why["loc"] == ["body", "options", "parameter.SEAT"]
        assert why["msg"] == "SEAT: a value is missing (The number on your desk.)"
        assert 'name="parameter.SEAT"' in (await has.client.ask("GET", "/lab-form/alice", has.alice)).text
        options["parameter.SEAT"] = ["7"]
        assert (await has.client.ask("POST", "/labs/alice/create", has.alice, body)).status_code == 303
        await has.known("running")
        base = world.namespace("alice")
        plain = (await world.admin.get(f"{base}/configmaps/nb-alice-env") or {})["data"]
        assert plain == {
            "A": "of the settings",
            "B": "b",
            "SITE": "campus-1",
            "SEAT": "7",
            "CPU_GUARANTEE": "1",
            "CPU_LIMIT": "1",
            "MEM_GUARANTEE": str(2**30),
            "MEM_LIMIT": str(2**30),
            "IMAGE_DESCRIPTION": f"{asks}: Release 1.0.0",
            "IMAGE_DIGEST": "digest-1.0.0",
            "LAB_SIZE": "small",
            "DEBUG": "TRUE",
        }
        secret = (await world.admin.get(f"{base}/secrets/nb-alice") or {})["data"]
        assert {name: base64.b64decode(value).decode() for name, value in secret.items()} == {
            "HUB_TOKEN": "t-1",
            "VPN_KEY": "k-1",
        }
        pod = await world.admin.get(world.pod("alice"))
        assert pod is not None
        assert pod["spec"]["containers"][0]["envFrom"] == [
            {"configMapRef": {"name": "nb-alice-env"}},
            {"secretRef": {"name": "nb-alice"}},
        ]
        assert sorted((await has.client.ask("GET", "/labs/alice", has.hub)).json()["env"]) == [
            "A",
            "B",
            "HUB_TOKEN",
            "SEAT",
        ]
        for resource in ("configmaps", "secrets"):
            assert await world.admin.may(PROVIDER, "get", resource, "nublado-alice")
            assert not await world.admin.may(PROVIDER, "list", resource, "nublado-alice")


async def test_the_token_that_an_earlier_version_stored_is_removed(world: PortalWorld) -> None:
    """R002-062, decided otherwise: of a lab that is there when the portal starts; then nothing more happens to it."""
    request = LabRequest(id="r1", at=1_790_000_000, definition="netlab:1.0", env=("HUB_TOKEN",))
    ended = '{"id":"r1","kind":"create","phase":"failed","at":4102444800}'
    notes = {**annotations_for("alice", request), "vkprovider.io/operation": ended}
    assert "secrets" not in notes["vkprovider.io/request"], "as an earlier version wrote it"
    labels = labels_for(SYSTEM, "alice")
    assert labels[MARK] == SYSTEM
    await world.stranger("nublado-alice", labels, notes)
    base = world.namespace("alice")
    old = {"metadata": {"name": "nb-alice", "labels": labels}, "stringData": {"token": "t", "HUB_TOKEN": "h"}}
    await world.admin.create(f"{base}/secrets", old)
    running = await world.replica()

    async def emptied() -> bool:
        note = await world.note("alice", "request")
        return note is not None and note.get("secrets") == []

    await eventually(emptied, "the record says that there is no token")
    secret = await world.admin.get(f"{base}/secrets/nb-alice")
    assert secret is not None
    assert not secret.get("data")
    before = len(running.writes)
    await world.until_unlocked()
    again = [line for line in running.writes[before:] if "secrets" in line]
    assert again == []
    assert (await world.note("alice", "operation"))["phase"] == "failed"
