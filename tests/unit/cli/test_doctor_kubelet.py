"""What the doctor says of the kubelet API."""

from typing import Any

import msgspec

from vkprovider.doctor.findings import Level
from vkprovider.labs.checks.kubelet import check_nodes, check_requests
from vkprovider.labs.kubelet.certificate import SigningRequest
from vkprovider.platform.objects import Node


def request(name: str, *conditions: str) -> SigningRequest:
    status = {"conditions": [{"type": kind, "status": "True"} for kind in conditions]}
    return msgspec.convert({"metadata": {"name": name}, "status": status}, SigningRequest)


def node(name: str, port: int) -> Node:
    endpoints: dict[str, Any] = {"kubeletEndpoint": {"Port": port}} if port else {}
    return msgspec.convert({"metadata": {"name": name}, "status": {"daemonEndpoints": endpoints}}, Node)


def test_a_certificate_that_awaits_approval_is_a_note_with_the_command() -> None:
    decided = [request("a", "Approved"), request("b", "Denied"), request("c", "Approved", "Failed")]
    assert check_requests("vk", decided) == []
    [found] = check_requests("vk", [*decided, request("z"), request("y")])
    assert (found.level, found.reason) == (Level.NOTE, "ServingCertificatePending")
    assert found.message.startswith("not approved yet: 2 serving certificates of replicas;")
    assert found.remedy.startswith("kubectl certificate approve y z;")
    [found] = check_requests("vk", [*decided, request("z")])
    assert found.message.startswith("not approved yet: 1 serving certificate of replicas;")


def test_a_node_without_a_kubelet_api_is_a_note() -> None:
    assert check_nodes("vk", [node("vnode.a", 20250)]) == []
    [found] = check_nodes("vk", [node("vnode.a", 20250), node("vnode.b", 0)])
    assert (found.level, found.reason) == (Level.NOTE, "KubeletNotServed")
    assert "1 of 2 Nodes" in found.message
    assert "vnode.b" in found.message
