"""What the doctor says of the relays of muxes."""

import msgspec
import pytest
import yaml

from vkprovider.doctor.findings import Level
from vkprovider.doctor.programs import ProgramWorkload
from vkprovider.labs.settings.cluster import KubeletSettings
from vkprovider.mux.checks import check_ports
from vkprovider.platform.shipped import find_manifests

KUBELET = KubeletSettings().ports


def test_the_shipped_daemon_set_is_found_with_its_settings() -> None:
    text = (find_manifests() / "components" / "relay" / "daemonset.yaml").read_text()
    found = msgspec.convert(yaml.safe_load(text), ProgramWorkload)
    assert found.config_maps == ["vkprovider-relay"]
    assert yaml.safe_load(text)["metadata"]["labels"] == {"app.kubernetes.io/name": "vkprovider-relay"}


@pytest.mark.parametrize("ports", ["29000-30000", "31000-31010", "32767-33000", "20000-40000"])
def test_node_ports_are_not_for_a_relay(ports: str) -> None:
    [found] = check_ports("DaemonSet/a/b", {"VKPROVIDER_RELAY_PORTS": ports}, KUBELET)
    assert (found.level, found.reason) == (Level.FAULT, "RelayPortsTaken")
    assert ports in found.message


@pytest.mark.parametrize(
    ("ports", "kubelet"), [("24249-25000", ""), ("26000-26999", "26500-26600"), ("26000-26999", "26999")]
)
def test_ports_of_the_kubelet_api_are_a_note(ports: str, kubelet: str) -> None:
    [found] = check_ports("DaemonSet/a/b", {"VKPROVIDER_RELAY_PORTS": ports}, kubelet or KUBELET)
    assert (found.level, found.reason) == (Level.NOTE, "RelayPortsTaken")


@pytest.mark.parametrize("kubelet", ["", "0", "not a range"])
def test_the_shipped_ports_are_free(kubelet: str) -> None:
    given = {"VKPROVIDER_RELAY_PORTS": "26000-29999"}
    assert check_ports("DaemonSet/a/b", given, kubelet or KUBELET) == []
    assert check_ports("DaemonSet/a/b", {}, kubelet or KUBELET) == []
