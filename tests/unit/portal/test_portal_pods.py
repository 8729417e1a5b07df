"""The Pod of a user lab: a container for the lab, and one for each device that has a console."""

from typing import Any

import pytest

from vkprovider.lablet.podspec import CONTAINERS_MAX, device_containers
from vkprovider.platform.objects import CustomResource, Metadata
from vkprovider.portal.service.records import pod_body


def definition(devices: list[dict[str, Any]] | None, version: str = "1.1") -> CustomResource:
    status = {"version": version} | ({} if devices is None else {"devices": devices})
    return CustomResource(Metadata("netlab"), {}, status)


def device(container: str, kind: str = "iosv") -> dict[str, Any]:
    return {"label": container.upper(), "container": container, "nodeDefinition": kind}


ROUTERS = [device("r1"), device("r2")]


@pytest.mark.parametrize(
    ("found", "image", "containers"),
    [
        (definition(ROUTERS), "netlab:1.1", ("r1", "r2")),
        (definition([*ROUTERS, device("net", "external_connector")]), "netlab:1.1", ("r1", "r2")),
        (definition([*ROUTERS, device("sw", "unmanaged_switch")]), "netlab:1.1", ("r1", "r2")),
        (definition([*ROUTERS, {**device("traffic"), "hidden": True}]), "netlab:1.1", ("r1", "r2")),
        (definition([*ROUTERS, device("r1"), device(""), device("lab")]), "netlab:1.1", ("r1", "r2")),
        (definition(ROUTERS), "netlab:1.0", ()),  # the status lists the devices of the newest version
        (definition(None), "netlab:1.1", ()),
        (definition([]), "netlab:1.1", ()),
        (CustomResource(Metadata("netlab"), {}, {"devices": 7}), "netlab:1.1", ()),
        (None, "netlab:1.1", ()),
    ],
)
def test_devices_that_get_a_container(found: CustomResource | None, image: str, containers: tuple[str, ...]) -> None:
    assert device_containers(found, image) == containers


def test_a_large_lab_has_a_bounded_number_of_containers() -> None:
    many = definition([device(f"r{number}") for number in range(500)])
    assert len(device_containers(many, "netlab:1.1")) == CONTAINERS_MAX == 100


def test_containers_ask_for_what_a_cluster_may_enforce_and_are_consoles() -> None:
    body = pod_body("nb-alice", {}, {}, "netlab:1.1", ("r1",))
    lab, router = body["spec"]["containers"]
    assert (lab["name"], router["name"]) == ("lab", "r1")
    assert {key: value for key, value in lab.items() if key != "name"} == {
        key: value for key, value in router.items() if key != "name"
    }
    assert body["metadata"]["annotations"]["kubectl.kubernetes.io/default-container"] == "lab"
