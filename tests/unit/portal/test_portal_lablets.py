"""What a replica of the portal knows of lablets that are not user labs, and who hears of a change."""

import json
from typing import Any

import msgspec
import pytest

from vkprovider.platform.kube.watch import Head
from vkprovider.platform.objects import Pod
from vkprovider.portal.service.informers import OtherLablets, keep, slim_lablet


def pod_json(name: str = "lab-1", namespace: str = "net101", **spec: Any) -> bytes:
    return json.dumps(
        {
            "metadata": {
                "name": name,
                "namespace": namespace,
                "uid": f"uid-{name}",
                "labels": {"app": "pool", "vkprovider.io/x": "y"},
                "annotations": {"vkprovider.io/message": "2026-11-26T17:00:00Z five minutes", "huge": "x" * 9000},
                "finalizers": ["vkprovider.io/claims"],
            },
            "spec": {
                "containers": [{"name": "lab", "image": "net101:1.0.0"}, {"name": "r1", "image": "net101:1.0.0"}],
                "runtimeClassName": "net101",
                "overhead": {"cpu": "6"},
                **spec,
            },
            "status": {"phase": "Pending", "conditions": [{"type": "Ready", "status": "False"}]},
        }
    ).encode()


def pod(name: str = "lab-1", namespace: str = "net101", **spec: Any) -> Pod:
    return msgspec.json.decode(pod_json(name, namespace, **spec), type=Pod)


SENT = {"vkprovider.io/component": "vnode"}


@pytest.mark.parametrize(
    ("spec", "is_lablet"),
    [
        ({"nodeSelector": SENT}, True),
        ({"nodeName": "vnode.cml-1"}, True),
        ({"nodeSelector": {"vkprovider.io/component": "agent"}}, False),
        ({"nodeName": "gpu-node-1", "nodeSelector": {"disk": "ssd"}}, False),
        ({"runtimeClassName": "gvisor"}, False),
        ({"nodeSelector": SENT, "runtimeClassName": ""}, False),
        ({"nodeName": "vnode.cml-1", "runtimeClassName": ""}, False),
    ],
)
def test_a_lablet_is_what_the_runtime_class_of_a_definition_sends_to_a_worker(spec: Any, *, is_lablet: bool) -> None:
    assert keep(msgspec.json.decode(pod_json(**spec), type=Head)) is is_lablet


def test_what_a_view_shows_is_kept_and_no_more() -> None:
    kept = slim_lablet(pod(nodeName="vnode.cml-1"))
    assert kept.metadata.annotations == {"vkprovider.io/message": "2026-11-26T17:00:00Z five minutes"}
    assert kept.metadata.labels == {"vkprovider.io/x": "y"}
    assert [each.name for each in kept.spec.containers] == ["lab", "r1"]
    assert (kept.spec.runtime_class_name, kept.spec.node_name) == ("net101", "vnode.cml-1")
    assert kept.status == pod().status
    other = slim_lablet(pod("lab-2", nodeName="vnode.cml-1"))
    assert other.spec.containers is kept.spec.containers


def test_lablets_are_found_by_namespace_and_name_until_they_are_gone() -> None:
    lablets = OtherLablets(lambda _: {}, list)
    second, first, elsewhere = pod("lab-2"), pod("lab-1"), pod("lab-1", "net202")
    for each in (second, first, elsewhere):
        lablets.pod_changed(None, each)
    assert lablets.of("net101") == [first, second]
    assert lablets.of("nowhere") == []
    assert lablets.pod("net101", "lab-2") is second
    assert lablets.pod("net101", "lab-3") is None
    assert lablets.namespaces() == ["net101", "net202"]
    assert len(lablets) == 3
    changed = pod("lab-2", nodeName="vnode.cml-1")
    lablets.pod_changed(second, changed)
    assert lablets.pod("net101", "lab-2") is changed
    lablets.pod_changed(elsewhere, None)
    assert lablets.namespaces() == ["net101"]


async def test_a_change_is_heard_by_those_who_listen_to_the_lablet_or_its_namespace() -> None:
    lablets = OtherLablets(lambda _: {}, list)
    async with (
        lablets.listen("net101") as all_news,
        lablets.listen("net101", "lab-1") as news,
        lablets.listen("net101", "lab-2") as other,
        lablets.listen("net202") as elsewhere,
    ):
        assert lablets.listeners_total == 4
        lablets.pod_changed(None, pod("lab-1"))
        assert (all_news.is_set(), news.is_set()) == (True, True)
        assert (other.is_set(), elsewhere.is_set()) == (False, False)
        news.clear()
        lablets.pod_changed(pod("lab-1"), None)
        assert news.is_set()
    assert lablets.listeners_total == 0
