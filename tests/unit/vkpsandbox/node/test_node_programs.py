"""The programs of an ordinary Node: what their modules pin."""

import pytest

from vkpsandbox.controlplane import build
from vkpsandbox.controlplane.versions import kubernetes_version
from vkpsandbox.node import programs


def test_kubelet_and_kube_proxy_are_of_the_release_of_the_control_plane() -> None:
    module = programs.module_of(programs.KUBERNETES)
    assert kubernetes_version(module.go_mod) == kubernetes_version(build.module_files()[0])


@pytest.mark.parametrize("name", programs.MODULES)
def test_a_module_says_what_is_built_of_it(name: str) -> None:
    module = programs.module_of(name)
    tools = {line.split("//")[0].removeprefix("tool").strip() for line in module.go_mod.decode().splitlines()}
    own = {f"vkprovider.io/{name}"} if module.source else set()
    assert {*module.programs.values()} <= tools | own
    assert " v" in module.title


def test_a_sandbox_without_a_node_builds_none_of_them() -> None:
    modules = [programs.module_of(name) for name in programs.MODULES]
    assert not {program for module in modules for program in module.programs} & {*build.PROGRAMS}
    kept = {module.target.parent for module in modules}
    assert len(kept) == len(modules)
    assert build.control_plane().target.parent not in kept
