"""The archive of the plugin: what `make plugin` builds installs itself at the first call, and once."""

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path

import pytest
import yaml

from tools import krew
from tools.helm import chart
from vkprovider import __version__
from vkprovider.cli.lablet import group

ROOT = Path(__file__).parents[2]
SOURCES = (
    *(
        "vkprovider",
        "tunnels",
        "manifests",
        "tools",
        "pyproject.toml",
        "setup.py",
        "MANIFEST.in",
        "README.md",
        "LICENSE",
    ),
    *("Makefile", "requirements.lock", "constraints.txt", "CHANGELOG.md"),
)
COMPLETION = "kubectl_complete-lablet"


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make plugin` builds, of a copy of the checkout and without the package index."""
    source = tmp_path_factory.mktemp("plugin")
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in SOURCES:
        origin = ROOT / name
        if origin.is_dir():
            shutil.copytree(origin, source / name, ignore=ignored)
        else:
            shutil.copy(origin, source)
    venv = Path(sys.executable).parents[1]
    environ = {**os.environ, "PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0"}
    command = ["make", "plugin", f"VENV={venv}", f"--old-file={venv}/.installed"]
    made = subprocess.run(command, cwd=source, env=environ, capture_output=True, text=True, timeout=300, check=False)  # noqa: S603 (make)
    assert made.returncode == 0, made.stderr
    return source / "dist" / f"kubectl-lablet-{__version__}.tar.gz"


@pytest.fixture
def unpacked(archive: Path, tmp_path: Path) -> Path:
    """The archive where krew unpacks it; what is locked is not fetched here."""
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path / "store", filter="data")
    (tmp_path / "store" / "requirements.lock").write_text("")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "kubectl-lablet").symlink_to("../store/kubectl-lablet")
    return tmp_path


def call(home: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    program = str(home / "bin" / "kubectl-lablet")
    whole = {"HOME": str(home), "PATH": os.environ["PATH"], **environ}
    return subprocess.run([program, *arguments], env=whole, capture_output=True, text=True, timeout=300, check=False)  # noqa: S603 (ours)


def test_archive_holds_what_the_first_call_needs(archive: Path) -> None:
    with tarfile.open(archive) as packed:
        members = {member.name.removeprefix("./"): member for member in packed.getmembers()}
    wheel = f"vkprovider-{__version__}-py3-none-any.whl"
    assert members.keys() == {".", "kubectl-lablet", COMPLETION, "LICENSE", "requirements.lock", wheel}
    assert members["kubectl-lablet"].mode & 0o111
    assert members[COMPLETION].mode & 0o111
    assert all(member.isfile() or member.isdir() for member in members.values()), "krew unpacks nothing else"


def test_krew_manifest_of_a_release_names_the_archive_and_its_digest(
    archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert krew.main([str(archive), "https://downloads.example.com/v1/"]) == 0
    manifest = yaml.safe_load(capsys.readouterr().out)
    assert (manifest["metadata"]["name"], manifest["spec"]["version"]) == ("lablet", f"v{chart.semver(__version__)}")
    [platform] = manifest["spec"]["platforms"]
    assert platform["uri"] == f"https://downloads.example.com/v1/{archive.name}"
    assert platform["sha256"] == hashlib.sha256(archive.read_bytes()).hexdigest()
    assert platform["bin"] == group.PROGRAM == "kubectl-lablet"
    assert krew.main([str(archive.with_name("kubectl-lablet-0.0.0.tar.gz")), "https://downloads.example.com"]) == 1


def test_first_call_installs_and_later_ones_do_not(unpacked: Path) -> None:
    first = call(unpacked, "--version")
    assert "kubectl lablet: installing into" in first.stderr
    assert "No module named" in first.stderr, "nothing is locked here"
    [made] = (unpacked / ".cache" / "kubectl-lablet").iterdir()
    [place] = made.glob("lib/python*/site-packages")
    (place / "borrowed.pth").write_text(sysconfig.get_path("purelib"))
    second = call(unpacked, "--version")
    assert (second.returncode, second.stderr) == (0, "")
    assert __version__ in second.stdout
    (made / "bin" / "python").unlink()  # as after an upgrade of the system's Python
    assert "installing into" in call(unpacked, "--version").stderr


def test_failed_installation_leaves_nothing_and_says_so(unpacked: Path) -> None:
    (unpacked / "store" / "requirements.lock").write_text("nowhere==1.0 --hash=sha256:" + "0" * 64 + "\n")
    failed = call(unpacked, "--version", PIP_NO_INDEX="1")
    assert failed.returncode == 1
    assert "kubectl lablet: the installation failed, see above" in failed.stderr
    assert list((unpacked / ".cache" / "kubectl-lablet").iterdir()) == []


def test_missing_python_is_named(unpacked: Path, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in ("sh", "readlink", "dirname", "cat", "cksum", "tr"):
        found = shutil.which(tool)
        assert found
        (tools / tool).symlink_to(found)
    failed = call(unpacked, PATH=str(tools))
    assert (failed.returncode, "needs Python 3.11 or later with the module venv" in failed.stderr) == (1, True)
