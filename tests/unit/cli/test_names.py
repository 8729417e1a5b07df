"""Names of settings that nobody reads: a misspelt one must not look as if it had an effect."""

import re
from pathlib import Path
from typing import Final

import pytest

from vkprovider.cli.environment import KNOWN, unknown

ROOT: Final = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({"WORKER_PROBE_SECOND": "3"}, {"WORKER_PROBE_SECOND": "WORKER_PROBE_SECONDS"}),
        ({"VKPROVIDER_HTTP_PROT": "80"}, {"VKPROVIDER_HTTP_PROT": "VKPROVIDER_HTTP_PORT"}),
        ({"VKPROVIDER_HTP_PORT": "80"}, {"VKPROVIDER_HTP_PORT": "VKPROVIDER_HTTP_PORT"}),
        ({"VKPROVIDER_SOMETHING_ELSE_ENTIRELY": "1"}, {"VKPROVIDER_SOMETHING_ELSE_ENTIRELY": ""}),
        ({"WORKER_PROBE_SECONDS": "3", "VKPROVIDER_AGENT_NAME": "a", "PATH": "/bin", "HOME": "/", "LANG": "C"}, {}),
        ({"worker_probe_second": "3", "VKPROVIDER_HTTP_PROT": ""}, {"VKPROVIDER_HTTP_PROT": "VKPROVIDER_HTTP_PORT"}),
        ({"VKPROVIDER_SANDBOX": "default", "POD_IPS": "10.0.0.7"}, {}),
    ],
)
def test_names_that_nobody_reads_are_found_with_the_nearest_one(given: dict[str, str], meant: dict[str, str]) -> None:
    assert unknown(given) == meant


def test_variables_of_kubernetes_services_are_none_of_ours() -> None:
    """A Pod has them for each Service of its namespace, such as `vkprovider` and `vkprovider-metrics`."""
    for service in ("VKPROVIDER", "VKPROVIDER_METRICS"):
        given = {
            f"{service}_SERVICE_HOST": "10.0.0.1",
            f"{service}_SERVICE_PORT": "8082",
            f"{service}_SERVICE_PORT_HTTPS": "8082",
            f"{service}_PORT": "tcp://10.0.0.1:8082",
            f"{service}_PORT_8082_TCP": "tcp://10.0.0.1:8082",
            f"{service}_PORT_8082_TCP_PROTO": "tcp",
            f"{service}_PORT_8082_TCP_PORT": "8082",
            f"{service}_PORT_8082_TCP_ADDR": "10.0.0.1",
        }
        assert unknown(given) == {}


def test_every_setting_of_the_reference_page_is_known() -> None:
    """The page is made from the settings by other code, and names both variables of a setting that has two."""
    rows = [
        line.split("|")[1] for line in (ROOT / "docs/reference/settings.md").read_text().splitlines() if "|" in line
    ]
    variables = {name for row in rows for name in re.findall(r"`([A-Z][A-Z0-9_]+)`", row)}
    assert {"VKPROVIDER_INTERNAL_IP", "POD_IP"} < variables
    assert variables <= KNOWN
    assert unknown(dict.fromkeys(variables, "1")) == {}
