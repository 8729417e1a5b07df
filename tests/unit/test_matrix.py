"""The versions of Kubernetes of `make matrix`: what is pinned, and that it is what is promised."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools.matrix import programs
from vkprovider.labs.pure.worker.endpoint import KUBERNETES_OLDEST
from vkpsandbox.controlplane import build
from vkpsandbox.controlplane.versions import kubernetes_version

ROOT = Path(__file__).parents[2]


def minor(version: str) -> int:
    return int(version.removeprefix("v").split(".")[1])


def test_versions_are_the_oldest_supported_one_between_and_the_one_before_the_sandboxes() -> None:
    oldest, between, before = programs.versions()
    assert oldest == ".".join(map(str, KUBERNETES_OLDEST))
    assert minor(oldest) < minor(between) < minor(before) == minor(kubernetes_version(build.module_files()[0])) - 1


@pytest.mark.parametrize("version", programs.versions())
def test_a_module_pins_its_version_and_the_etcd_that_belongs_to_it(version: str) -> None:
    module = programs.module(version)
    text, kubernetes = module.go_mod.decode(), kubernetes_version(module.go_mod)
    assert kubernetes.startswith(f"v{version}.")
    assert f"gitVersion={kubernetes}" in module.flags
    assert module.title == f"the control plane {kubernetes}"
    assert all(f"\t{package}\n" in text for package in build.PROGRAMS.values())
    etcd = {name: re.search(rf"go\.etcd\.io/etcd/{name}/v3 (\S+)", text) for name in ("client", "server")}
    assert len({found and found[1] for found in etcd.values()}) == 1
    pinned = dict(re.findall(r"^\t(k8s\.io/\S+) => \1 (\S+)$", text, re.MULTILINE))
    assert set(pinned.values()) == {kubernetes.replace("v1.", "v0.", 1)}
    for name, required in re.findall(r"^\t(k8s\.io/\S+) (v0\.\d+\.\d+) // indirect$", text, re.MULTILINE):
        assert name in pinned, f"{name} {required} is not that of {kubernetes}"
    assert f"k8s.io/client-go {pinned['k8s.io/client-go']}/go.mod".encode() in module.go_sum


def test_builds_of_all_versions_are_kept_apart() -> None:
    targets = {programs.module(version).target for version in programs.versions()} | {build.control_plane().target}
    assert len(targets) == 1 + len(programs.versions())
    assert {target.parent for target in targets} == {build.control_plane().target.parent}


def test_unknown_version_is_refused_with_those_that_there_are() -> None:
    command = [sys.executable, "-m", "tools.matrix.programs", "1.29"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603 (ours)
    assert said.returncode == 2
    assert "choose from" in said.stderr
    assert all(version in said.stderr for version in programs.versions())
