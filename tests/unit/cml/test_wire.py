import msgspec
import pytest

from vkprovider.cml.wire import CmlLabDetail, CmlNode, CmlNodeConfiguration, CmlNodeRow
from vkprovider.cml.worker import console_ports


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b'{"configuration": "hostname r1"}', "hostname r1"),
        (b'{"configuration": null}', ""),
        (b"{}", ""),
        (b'{"configuration": []}', ""),
        (b'{"configuration": [{"name": "Main", "content": "hostname r1\\n"}]}', "hostname r1\n"),
        (
            b'{"configuration": [{"name": "a.cfg", "content": "one\\n"}, {"name": "b.cfg", "content": null}]}',
            "### a.cfg\none\n### b.cfg\n\n",
        ),
    ],
)
def test_a_configuration_is_one_text(body: bytes, text: str) -> None:
    assert msgspec.json.decode(body, type=CmlNodeConfiguration).text() == text


def test_r000_042_console_ports_come_from_tags() -> None:
    tags = ("serial:5041", "serial:5042:1", "vnc:5044", "pat:tcp:8080:80", "serial:x", "a serial:1")
    nodes = [CmlNode(id="1", label="r1", tags=tags), CmlNode(id="2", label="r2")]
    assert console_ports(nodes) == {"r1": 5041, "r1:1": 5042}


def test_r000_035_states_pass_verbatim() -> None:
    body = b'[{"id": "n", "lab_id": "l", "label": "r1", "node_definition": "iosv", "state": "MELTED", "x": {"y": 1}}]'
    assert msgspec.json.decode(body, type=list[CmlNodeRow])[0].state == "MELTED"


def test_what_a_version_lacks_has_a_default() -> None:
    assert msgspec.json.decode(b'{"id": "l"}', type=CmlLabDetail) == CmlLabDetail(id="l")


def test_a_lab_without_id_is_no_lab() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"code": 200}', type=CmlLabDetail)
