"""The overlay with all programs, under one image name of somebody's own, on a real API server; and the one address."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.support.apiserver import ApiServer, running
from tests.support.doctor import examined
from vkprovider import __version__
from vkprovider.platform.shipped import find_manifests

IMAGE: Final = "registry.example.com/labs/vkprovider"
PROGRAMS: Final = {"vkprovider", "vkprovider-portal", "vkprovider-mux", "vkprovider-relay"}


@pytest.fixture(scope="module")
def apiserver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """One of its own: policies of the overlay stay in it."""
    with running(tmp_path_factory.mktemp("apiserver")) as server:
        yield server


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """An overlay of somebody's own, as docs/install.md has it."""
    base = os.path.relpath(find_manifests() / "overlays" / "complete", tmp_path.resolve())
    text = yaml.safe_dump({"resources": [base], "images": [{"name": "vkprovider", "newName": IMAGE}]})
    (tmp_path / "kustomization.yaml").write_text(text)
    return tmp_path


def images_of(item: dict[str, Any]) -> dict[str, str]:
    return {each["name"]: each["image"] for each in item["spec"]["template"]["spec"]["containers"]}


async def test_all_programs_are_installed_with_one_image_name(apiserver: ApiServer, mine: Path) -> None:
    apiserver.kubectl("apply", "--server-side", "--force-conflicts", "-k", str(mine))
    objects = list(yaml.safe_load_all(apiserver.kubectl("kustomize", str(mine))))
    workloads = [item for item in objects if item["kind"] in {"Deployment", "DaemonSet"}]
    assert {item["metadata"]["name"] for item in workloads} == PROGRAMS
    named = {image for item in workloads for name, image in images_of(item).items() if name != "haproxy"}
    assert named == {f"{IMAGE}:{__version__}"}
    apiserver.kubectl("apply", "--server-side", "-f", str(find_manifests() / "examples" / "ingress.yaml"))
    found = {(each.object, str(each.reason)) for each in (await examined(apiserver.kubeconfig)).findings}
    system = "vkprovider-system"
    assert {each for each in found if each[1] in {"NoAddress", "AddressPending"}} == {
        (f"Ingress/{system}/labs", "AddressPending")
    }
    page = {each for each in found if each[1].startswith("Page")}
    assert page == {
        (f"Service/{system}/vkprovider", "PageAway"),  # no controller makes its EndpointSlices here
        (f"Secret/{system}/vkprovider-tls", "PageUntrusted"),
        (f"ConfigMap/{system}/vkprovider-settings", "PageRefuses"),
    }
    down = {about for about, reason in found if reason == "ProgramUnavailable"}
    assert down == {
        f"Deployment/{system}/vkprovider-portal",
        f"Deployment/{system}/vkprovider-mux",
        "DaemonSet/vkprovider-relay/vkprovider-relay",
    }
