"""The release workflow: it builds by targets that exist, publishes what `make release` makes, names no private host."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from vkprovider import __version__

ROOT = Path(__file__).parents[2]
PATH = ROOT / ".github" / "workflows" / "release.yaml"
WORKFLOW: dict[Any, Any] = yaml.safe_load(PATH.read_text())
STEPS = [step for job in WORKFLOW["jobs"].values() for step in job["steps"]]
SCRIPTS = [step["run"] for step in STEPS if "run" in step]


def make(*arguments: str) -> str:
    """Ask make; nothing is carried out with --dry-run."""
    command = ["make", "--no-print-directory", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60).stdout  # noqa: S603 (make)


def test_only_a_version_releases() -> None:
    assert WORKFLOW[True]["push"] == {"tags": ["v[0-9]+.[0-9]+.[0-9]+*"]}, "YAML 1.1 reads `on` as True"
    assert set(WORKFLOW[True]) == {"push"}
    assert WORKFLOW["jobs"]["publish"]["needs"] == "test"
    assert make("version").strip() == __version__


def test_rights_are_as_small_as_the_jobs() -> None:
    assert WORKFLOW["permissions"] == {}
    assert WORKFLOW["jobs"]["test"]["permissions"] == {"contents": "read"}
    assert WORKFLOW["jobs"]["publish"]["permissions"] == {"contents": "write", "packages": "write"}


def test_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    used = {name for script in SCRIPTS for name in re.findall(r"\bmake ([a-z]+)", script)}
    assert used == {"version", "faults", "release", "image"}
    assert used <= targets


def test_scripts_are_shell() -> None:
    for script in SCRIPTS:
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)  # noqa: S607 (bash)


def test_no_host_but_the_public_one_is_named() -> None:
    hosts = set(re.findall(r"\b[\w-]+(?:\.[\w-]+)*\.(?:io|com|org|net|dev)\b", PATH.read_text()))
    assert hosts == {"ghcr.io"}


@pytest.mark.parametrize("url", ["", "https://downloads.example.com/v1"])
def test_release_has_every_kind_of_file(url: str) -> None:
    names = f"vkprovider-{__version__}"
    wanted = {f"{names}-py3-none-any.whl", f"{names}.tgz", f"{names}.cdx.json", f"kubectl-lablet-{__version__}.tar.gz"}
    wanted |= {f"install-{__version__}.yaml"} | ({"lablet.yaml"} if url else set())
    [line] = [line for line in make("--dry-run", "release", f"URL={url}").splitlines() if "sha256sum" in line]
    assert set(line.partition("sha256sum ")[2].partition(" >")[0].split()) == wanted
