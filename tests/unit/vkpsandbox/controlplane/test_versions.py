import os
from pathlib import Path

import pytest

from vkpsandbox import SandboxError
from vkpsandbox.controlplane import versions


@pytest.mark.parametrize("line", ["k8s.io/kubernetes v1.2.3", "\tk8s.io/kubernetes v1.2.3 // indirect"])
def test_version_is_read_from_go_mod(line: str) -> None:
    assert versions.kubernetes_version(f"module x\n{line}\n".encode()) == "v1.2.3"


def test_candidate_of_a_release_is_a_version() -> None:
    go_mod = b"\tgo.etcd.io/etcd/server/v3 v3.7.0-rc.0 // indirect\n\tk8s.io/kubernetes v1.37.0-rc.1 // indirect\n"
    assert versions.etcd_version(go_mod) == "v3.7.0-rc.0"
    assert versions.kubernetes_version(go_mod) == "v1.37.0-rc.1"


def test_go_mod_without_them_is_refused() -> None:
    with pytest.raises(SandboxError, match=r"no k8s\.io/kubernetes: reinstall"):
        versions.kubernetes_version(b"module x\n")
    with pytest.raises(SandboxError, match=r"no go\.etcd\.io/etcd/server/v3: reinstall"):
        versions.etcd_version(b"\tgo.etcd.io/etcd/api/v3 v3.6.8 // indirect\n")


def program(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("name", "asked", "says", "version"),
    [
        ("kube-apiserver", "--version", "Kubernetes v1.36.3", "v1.36.3"),
        ("kube-scheduler", "--version", "Kubernetes v1.33.5+k3s1", "v1.33.5+k3s1"),
        ("etcd", "--version", "etcd Version: 3.6.8\nGit SHA: 9f3b1f1\nGo Version: go1.24.9", "v3.6.8"),
        ("kubectl", "version --client", "Client Version: v1.36.3\nKustomize Version: v5.7.1", "v1.36.3"),
    ],
)
def test_program_says_its_version(tmp_path: Path, name: str, asked: str, says: str, version: str) -> None:
    answers = program(tmp_path / name, f"[ \"$*\" = '{asked}' ] && cat <<X\n{says}\nX")
    assert versions.said_by(answers) == version


def test_kubectl_is_asked_without_what_its_user_has_configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "broken"))
    kubectl = program(tmp_path / "kubectl", 'echo "$KUBECONFIG $KUBERC" >&2; exit 1')
    with pytest.raises(SandboxError, match=rf"ends with 1 and says no version: {os.devnull} off$"):
        versions.said_by(kubectl)


def test_program_that_says_nothing_of_use_is_quoted(tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match="kubectl version --client` ends with 3 and says no version: no library"):
        versions.said_by(program(tmp_path / "kubectl", "echo no library >&2; exit 3"))


def test_program_for_another_machine_does_not_run(tmp_path: Path) -> None:
    foreign = tmp_path / "etcd"
    foreign.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(57))
    foreign.chmod(0o755)
    with pytest.raises(SandboxError, match="etcd does not run on this machine: Exec format error"):
        versions.said_by(foreign)


def test_program_that_says_nothing_at_all_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "_ANSWER_S", 0.2)
    with pytest.raises(SandboxError, match=r"etcd --version` says nothing within 0\.2 s"):
        versions.said_by(program(tmp_path / "etcd", "exec sleep 30"))


V = dict.fromkeys(("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"), "v1.30.0")


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (V | {"etcd": "v3.5.10"}, ""),
        (V | {"kubectl": "v1.30.0+k3s1"}, ""),
        (V | {"kubectl": "v1.30.1"}, "must be one version of Kubernetes"),
        (V | {"kubectl": "v1.30.0-rc.1"}, "must be one version of Kubernetes"),
        (dict.fromkeys(V, "v1.29.15"), "must be 1.30 or later"),
        (dict.fromkeys(V, "v1.9.0"), "must be 1.30 or later"),
        (dict.fromkeys(V, "v2.0.0"), ""),
    ],
)
def test_programs_make_a_control_plane(said: dict[str, str], why: str) -> None:
    found = versions.unfit(said)
    assert why in found
    assert bool(found) == bool(why)
