import re
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from tools.generate import variables
from vkprovider import __version__
from vkprovider.mux.relay.process import CONFIG
from vkprovider.mux.relay.wanted import GATE, PORTS, SOURCES
from vkprovider.mux.settings import RelayProcessSettings, RelaySettings
from vkprovider.platform.shipped import find_manifests

FOLDER = find_manifests() / "components" / "relay"
KUSTOMIZATION: dict[str, Any] = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())
[LITERALS, FILES] = [
    dict(each.split("=", 1) for each in generator["literals"]) for generator in KUSTOMIZATION["configMapGenerator"]
]
POD: dict[str, Any] = yaml.safe_load((FOLDER / "daemonset.yaml").read_text())["spec"]["template"]["spec"]


def test_the_image_is_that_of_this_version() -> None:
    assert KUSTOMIZATION["images"] == [{"name": "vkprovider", "newTag": __version__}]


def test_the_manifest_sets_what_haproxy_reads_to_the_defaults() -> None:
    read = set(re.findall(r"\$\{(\w+)\}", CONFIG))
    assert read
    assert read <= LITERALS.keys()
    aliases = {str(field.validation_alias): name for name, field in variables(RelaySettings).items()}
    defaults = RelaySettings(mux=LITERALS["VKPROVIDER_RELAY_MUX"])
    assert {name: str(getattr(defaults, aliases[name])) for name in LITERALS} == LITERALS


def test_haproxy_has_the_files_that_its_configuration_names_and_they_are_empty() -> None:
    assert dict.fromkeys((PORTS, SOURCES, GATE), "") == FILES
    assert all(name in CONFIG for name in FILES)
    assert (FOLDER / "haproxy.cfg").read_text() == CONFIG


def test_readiness_asks_where_haproxy_answers() -> None:
    haproxy, _ = POD["containers"]
    get = haproxy["readinessProbe"]["httpGet"]
    assert f"{get['host']}:{get['port']}" == LITERALS["VKPROVIDER_RELAY_HEALTH"]
    assert f"monitor-uri {get['path']}" in CONFIG


def test_the_socket_is_where_both_containers_have_a_folder() -> None:
    folder = LITERALS["VKPROVIDER_RELAY_SOCKET"].rpartition("/")[0]
    for container in POD["containers"]:
        assert folder in {mount["mountPath"] for mount in container["volumeMounts"]}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("VKPROVIDER_RELAY_MUX", "labs"),
        ("VKPROVIDER_RELAY_MUX", ""),
        ("VKPROVIDER_RELAY_PORTS", "0"),
        ("VKPROVIDER_RELAY_PORTS", "29999-26000"),
        ("VKPROVIDER_RELAY_REWRITE", "198.51.100.1/32"),
        ("VKPROVIDER_RELAY_REWRITE", "198.51.100.1/32=127.0.0.0/8"),
        ("VKPROVIDER_RELAY_REWRITE", "198.51.100.1/32=::1/32"),
        ("VKPROVIDER_RELAY_REWRITE", "198.51.100.1/24=127.0.0.0/24"),
    ],
)
def test_a_wrong_setting_is_refused(name: str, value: str) -> None:
    with pytest.raises(ValidationError):
        RelayProcessSettings.from_environment({"VKPROVIDER_RELAY_MUX": "a/b", name: value})


def test_settings_are_read_as_they_are_meant() -> None:
    rewrite = "198.51.100.1/32=127.5.0.11/32 2001:db8::/64=fd00::/64"
    given = {"VKPROVIDER_RELAY_MUX": "team-a/consoles", "VKPROVIDER_RELAY_REWRITE": rewrite}
    found = RelayProcessSettings.from_environment(given).relay
    assert (found.namespace, found.name, found.port_range) == ("team-a", "consoles", (26000, 29999))
    assert [tuple(map(str, pair)) for pair in found.moved] == [
        ("198.51.100.1/32", "127.5.0.11/32"),
        ("2001:db8::/64", "fd00::/64"),
    ]
