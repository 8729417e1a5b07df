"""Leftovers are deleted by age, by the replica that leads, and never without a time; on the real API server."""

from typing import Any

import pytest

from tests.component.controllers.parts import context
from tests.support.apiserver import CONFIG_MAPS, Admin
from tests.support.faultyapi import FaultyApi
from vkprovider.lablet import names
from vkprovider.lablet.archives import Leftovers
from vkprovider.labs.controllers.lablet.archive import Archive
from vkprovider.labs.pure.lablet import leftovers
from vkprovider.labs.pure.lablet.leftovers import ANNOTATION_KEPT_AT
from vkprovider.labs.settings.cluster import LabletSettings
from vkprovider.platform.errors import OutsideError
from vkprovider.platform.kube.client import KubeClient

NOW = 2_000_000_000
DAY_S = 86_400


@pytest.fixture
def archive(real_kube: KubeClient) -> Archive:
    return Archive(context(real_kube, wall=lambda: float(NOW)), LabletSettings(kept_s=7 * DAY_S), lambda: True)


async def keep(admin: Admin, name: str, kept_at: str | None, component: str = names.COMPONENT_CONFIGS) -> None:
    annotations = {ANNOTATION_KEPT_AT: kept_at} if kept_at is not None else {}
    metadata: dict[str, Any] = {"name": name, "labels": {names.LABEL_COMPONENT: component}, "annotations": annotations}
    await admin.create(CONFIG_MAPS, {"metadata": metadata})


async def left(admin: Admin) -> set[str]:
    items = await admin.items(f"{CONFIG_MAPS}?labelSelector={names.LABEL_COMPONENT}")
    return {item["metadata"]["name"] for item in items}


async def test_only_what_is_older_than_the_setting_is_deleted(admin: Admin, archive: Archive) -> None:
    await keep(admin, "old", str(NOW - 7 * DAY_S - 1))
    await keep(admin, "young", str(NOW - 7 * DAY_S + 60))
    await keep(admin, "of-the-future", str(NOW + DAY_S))
    await keep(admin, "without-time", None)
    await keep(admin, "with-another-time", "yesterday")
    await keep(admin, "old-claims", str(0), component="claims")
    await archive.sweep()
    assert await left(admin) == {"young", "of-the-future", "without-time", "with-another-time", "old-claims"}


async def test_more_than_a_page_is_swept_and_what_is_gone_already_does_not_matter(
    admin: Admin, api: FaultyApi, archive: Archive
) -> None:
    for number in range(130):
        await keep(admin, f"old-{number:03}", "1")
    api.fault("^DELETE .*old-005", first=lambda _: admin.delete(f"{CONFIG_MAPS}/old-005"))
    await archive.sweep()
    assert await left(admin) == set()


async def test_a_sweep_that_cannot_list_deletes_nothing(admin: Admin, api: FaultyApi, archive: Archive) -> None:
    await keep(admin, "old", "1")
    api.fault("^GET .*labelSelector", status=500)
    with pytest.raises(OutsideError):
        await archive.sweep()
    assert await left(admin) == {"old"}
    assert not api.matching("^DELETE")


async def test_what_an_older_version_stored_is_listed_after_a_sweep(admin: Admin, archive: Archive) -> None:
    uid = "00000001-0000-4000-8000-000000000000"
    old = Leftovers("team", "a", uid, "netlab", "1.0.0", username="alice", at=NOW, configs={"r1": "hostname r1"})
    body = leftovers.build(old, namespace="vkprovider-system", installation="i")
    del body["metadata"]["labels"][names.LABEL_NAMESPACE]
    del body["metadata"]["annotations"][leftovers.ANNOTATION_ENTRY]
    await admin.create(CONFIG_MAPS, body)
    assert await archive.page("team", size=9, after="") == ([], "")
    for _ in range(2):
        await archive.sweep()
        [entry], _ = await archive.page("team", size=9, after="")
        assert (entry.id, entry.learner, entry.at) == (uid, "alice", NOW)
    assert await archive.find(uid) == old
