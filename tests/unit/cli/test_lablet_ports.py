"""The table of `kubectl lablet ports`."""

import json
from typing import Any

import click
import pytest

from tests.unit.cli.lablet_pod import lablet_pod
from vkprovider.classroom.pods import LabletPod
from vkprovider.cli.lablet.addresses import show
from vkprovider.cli.shared.output import Output
from vkprovider.cli.shared.pods import ports_of


def info(label: str, protocol: str, port: int, **more: Any) -> dict[str, Any]:
    return {"device_label": label, "protocol": protocol, "original_port": 5065, "allocated_port": port, **more}


def with_ports(infos: object, *containers: str) -> LabletPod:
    text = infos if isinstance(infos, str) else json.dumps(infos)
    return lablet_pod(notes={"vkprovider.io/port-mappings": text}, containers=("lab", *containers))


def printed(capsys: pytest.CaptureFixture[str], pod: LabletPod, output: Output) -> list[str]:
    show(ports_of(pod, {}), output, pod="a")
    return capsys.readouterr().out.splitlines()


def test_every_way_in_is_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    pod = with_ports(
        {
            "R_1_serial": info("R 1", "serial", 10012),
            "R_1_pat22": info("R 1", "pat", 10011, internal_port=22, transport="tcp"),
            "R_1_http": info("R 1", "http", 10014, transport="tcp", opened=False),
            "R_1_patudp53": info("R 1", "pat", 10015, internal_port=53, transport="udp"),
            "h0_vnc": info("h0", "vnc", 10013),
        },
        "r-1",
    )
    assert printed(capsys, pod, "table") == [
        "DEVICE   ACCESS   PROTOCOL   ADDRESS             PORT    CONTAINER",
        "R 1      pat      TCP        198.51.100.1        10011   r-1",
        "R 1      serial   <none>     198.51.100.1        10012   r-1",
        "R 1      http     TCP        not opened by CML   10014   r-1",
        "R 1      pat      UDP        198.51.100.1        10015   r-1",
        "h0       vnc      <none>     198.51.100.1        10013   <none>",
    ]
    first = printed(capsys, pod, "wide")[1]
    assert first.split()[-3:] == ["R_1_pat22", "5065", "22"]


def test_definition_knows_whose_container_it_is() -> None:
    """Two labels that make one name: only the definition tells them apart."""
    pod = with_ports({"r.1_serial": info("r.1", "serial", 10001)}, "r-1", "r-1-2")
    assert [port.container for port in ports_of(pod, {"r-1": "r-1", "r.1": "r-1-2"})] == ["r-1-2"]


def test_without_the_definition_no_container_is_named_that_may_be_another_device() -> None:
    ways = {f"{label}_serial": info(label, "serial", 10001 + n) for n, label in enumerate(("R1", "r1", "h0"))}
    pod = with_ports(ways, "r1", "r1-2", "h0")
    assert {port.device: port.container for port in ports_of(pod, {})} == {"R1": "", "r1": "", "h0": "h0"}
    known = {"R1": "r1", "r1": "r1-2", "h0": "h0"}
    assert {port.device: port.container for port in ports_of(pod, known)} == known


def test_no_ports() -> None:
    assert ports_of(lablet_pod(), {}) == []
    assert ports_of(with_ports({}), {}) == []


@pytest.mark.parametrize("text", ["{", "[]", '{"a": {"device_label": "h0"}}', '{"a": {"allocated_port": "x"}}'])
def test_report_that_cannot_be_read_is_explained(text: str) -> None:
    with pytest.raises(click.ClickException, match="port-mappings of pod/a cannot be read"):
        ports_of(with_ports(text), {})


def test_the_way_by_a_mux_is_a_column_where_there_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    access = {
        "h0_serial": {"state": "live", "address": "203.0.113.10", "port": 20000},
        "h0_vnc": {"state": "refused", "why": "the mux is full"},
        "h1_serial": {"state": "live", "address": "2001:db8::1", "port": 20001},
        "h2_serial": {"state": "pending"},
    }
    infos = {name: info(name[:2], name[3:], 10011 + n) for n, name in enumerate([*access, "h3_serial"])}
    notes = {"vkprovider.io/port-mappings": json.dumps(infos), "vkprovider.io/access": json.dumps(access)}
    rows = ports_of(lablet_pod(notes=notes), {})
    assert {row.name: row.via for row in rows} == {
        "h0_serial": "203.0.113.10:20000",
        "h0_vnc": "refused: the mux is full",
        "h1_serial": "[2001:db8::1]:20001",
        "h2_serial": "pending",
        "h3_serial": "",
    }
    show(rows, "table", pod="a")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["DEVICE", "ACCESS", "PROTOCOL", "ADDRESS", "PORT", "VIA", "CONTAINER"]
    assert lines[1].split()[:6] == ["h0", "serial", "<none>", "198.51.100.1", "10011", "203.0.113.10:20000"]
    assert "refused: the mux is full" in lines[2]


def test_an_answer_that_cannot_be_read_shows_no_way() -> None:
    infos = json.dumps({"h0_serial": info("h0", "serial", 10011)})
    for text in ("{", '{"h0_serial": {"state": "new"}}'):
        notes = {"vkprovider.io/port-mappings": infos, "vkprovider.io/access": text}
        assert [row.via for row in ports_of(lablet_pod(notes=notes), {})] == [""]
