"""The kube-proxy of a fault test: what its module pins."""

from tools.kubeproxy import program
from vkpsandbox.controlplane import build
from vkpsandbox.controlplane.versions import kubernetes_version


def test_it_is_of_the_release_of_the_control_plane() -> None:
    module = program.module()
    assert kubernetes_version(module.go_mod) == kubernetes_version(build.module_files()[0])
    assert f"tool {program.PACKAGE}\n" in module.go_mod.decode()


def test_the_sandbox_does_not_build_it() -> None:
    assert "kube-proxy" not in build.PROGRAMS
    assert program.module().target.parent != build.control_plane().target.parent
