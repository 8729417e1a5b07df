"""What containers, Pods and Nodes use: every container has a sample, and no counter decreases."""

import msgspec

from vkprovider.labs.kubelet.spi import DeviceUsage, Target
from vkprovider.labs.kubelet.usage import Meter, Use, by_container
from vkprovider.platform.objects import Pod


def use(container: str, cpu_s: float, memory_bytes: int = 1000, uid: str = "u1") -> DeviceUsage:
    return DeviceUsage(Target("ns", "p", uid, container), cpu_s, int(cpu_s * 100), memory_bytes, 50.0)


def pod(*containers: str) -> Pod:
    spec = {"containers": [{"name": name, "image": "i"} for name in containers], "nodeName": "vnode.w"}
    meta = {"name": "p", "namespace": "ns", "uid": "u1"}
    return msgspec.convert({"metadata": meta, "spec": spec, "status": {"startTime": "1970-01-01T00:00:40Z"}}, Pod)


def test_a_device_without_a_container_belongs_to_the_lablet() -> None:
    found = by_container(pod("lab", "r1"), [use("r1", 2.0), use("r2", 3.0), use("h1", 4.0, 500)])
    assert found["r1"] == Use(2.0, 200, 1000, 50.0)
    assert found["lab"] == Use(7.0, 700, 1500, 50.0)


def test_a_container_of_which_nothing_is_known_is_there() -> None:
    assert by_container(pod("lab", "r1"), []) == {"lab": Use(started_at=40.0), "r1": Use(started_at=40.0)}


def test_a_pod_of_devices_alone_loses_nothing() -> None:
    found = by_container(pod("r1", "r2"), [use("r1", 1.0), use("r2", 1.0), use("r3", 5.0)])
    assert sum(part.cpu_s for part in found.values()) == 7.0


def test_the_time_of_a_node_grows_on_when_devices_go_or_start_anew() -> None:
    meter = Meter()
    assert meter.advance("w", [use("r1", 10.0), use("r2", 5.0)]) == 15.0
    assert meter.advance("w", [use("r1", 12.0), use("r2", 5.0)]) == 17.0
    assert meter.advance("w", [use("r1", 13.0)]) == 18.0
    assert meter.advance("w", [use("r1", 2.0)]) == 18.0
    assert meter.advance("w", [use("r1", 3.0), use("r1", 4.0, uid="u2")]) == 23.0
    assert meter.advance("other", []) == 0.0
    meter.given_up("w")
    assert meter.advance("w", [use("r1", 3.0)]) == 3.0
