"""The wheel holds what the checkout has: built, installed into an environment of its own, used from elsewhere."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

from vkprovider import __version__

ROOT = Path(__file__).parents[2]
SOURCES = ("vkprovider", "tunnels", "manifests", "pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE")


def run(*command: str | Path, cwd: Path) -> str:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    result = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=100)  # noqa: S603 (ourselves)
    assert result.returncode == 0, result.stderr
    return result.stdout


def build(names: tuple[str, ...], project: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the project in a folder, built from a copy of some files of the checkout."""
    source = tmp_path_factory.mktemp("source")
    for name in names:
        origin = ROOT / name
        if origin.is_dir():
            shutil.copytree(origin, source / name, ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))
        else:
            shutil.copy(origin, source)
    target = tmp_path_factory.mktemp("dist")
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--no-index", f"--wheel-dir={target}")
    run(sys.executable, "-m", "pip", "wheel", *options, source / project, cwd=target)
    [built] = target.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(SOURCES, ".", tmp_path_factory)


@pytest.fixture(scope="module")
def sandbox_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(("vkpsandbox",), "vkpsandbox", tmp_path_factory)


@pytest.fixture(scope="module")
def simulators_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(("vkpsim",), "vkpsim", tmp_path_factory)


def install(home: Path, *wheels: Path) -> Path:
    """The `bin` of a new environment with wheels; what they depend on is borrowed from this one."""
    run(sys.executable, "-m", "venv", "--without-pip", home, cwd=home)
    options = (f"--python={home}", "install", "--quiet", "--no-deps", "--no-index")
    run(sys.executable, "-m", "pip", *options, *wheels, cwd=home)
    place = run(home / "bin" / "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=home)
    Path(place.strip(), "borrowed.pth").write_text(sysconfig.get_path("purelib"))
    return home / "bin"


@pytest.fixture(scope="module")
def product(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the container image has: the product alone."""
    return install(tmp_path_factory.mktemp("product"), wheel)


@pytest.fixture(scope="module")
def installed(
    wheel: Path, sandbox_wheel: Path, simulators_wheel: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    return install(tmp_path_factory.mktemp("environment"), wheel, sandbox_wheel, simulators_wheel)


def test_wheel_holds_packages_and_data_and_no_tests(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    shipped = {path.relative_to(ROOT).as_posix() for path in (ROOT / "vkprovider").rglob("*.py")}
    shipped |= {f"vkprovider/{path.relative_to(ROOT).as_posix()}" for path in (ROOT / "manifests").rglob("*.yaml")}
    shipped |= {"vkprovider/py.typed", "tunnels/py.typed", "vkprovider/labs/lds/openapi.yaml"}
    shipped |= {f"vkprovider/portal/api/{name}" for name in ("openapi.yaml", "form.html", "fields.html")}
    site = ROOT / "vkprovider" / "portal" / "web"
    served = [*site.rglob("templates/*"), *site.rglob("static/**/*")]
    shipped |= {path.relative_to(ROOT).as_posix() for path in served if path.is_file()}
    assert shipped <= names
    assert {name.split("/")[0].split("-")[0] for name in names} == {"vkprovider", "tunnels"}


def test_wheel_of_the_sandbox_holds_all_of_it_and_nothing_else(sandbox_wheel: Path) -> None:
    with zipfile.ZipFile(sandbox_wheel) as archive:
        names = set(archive.namelist())
    home = ROOT / "vkpsandbox"
    shipped = {path.relative_to(ROOT).as_posix() for path in home.rglob("*.py")}
    shipped |= {path.relative_to(ROOT).as_posix() for path in (home / "controlplane" / "go").glob("go.*")}
    shipped |= {"vkpsandbox/py.typed"}
    assert shipped <= names
    assert {name.split("/")[0].split("-")[0] for name in names} == {"vkpsandbox", "vkprovider_sandbox"}


def test_wheel_of_the_simulators_holds_all_of_them_and_runs_alone(simulators_wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(simulators_wheel) as archive:
        names = set(archive.namelist())
    shipped = {path.relative_to(ROOT).as_posix() for path in (ROOT / "vkpsim").rglob("*.py")}
    assert shipped | {"vkpsim/py.typed"} <= names
    assert {name.split("/")[0].split("-")[0] for name in names} == {"vkpsim", "vkprovider_simulators"}
    alone = install(tmp_path, simulators_wheel)
    script = "import sys; sys.modules.update(dict.fromkeys(('vkprovider', 'tunnels', 'vkpsandbox'))); "
    script += "from vkpsim.sim import sim; sim(['{}', '--help'])"
    for command in ("cml", "lds"):
        assert "Usage" in run(alone / "python", "-c", script.format(command), cwd=tmp_path)
    assert "cml" in run(alone / "vkpsim", "--help", cwd=tmp_path)


def test_wheel_and_source_of_the_spawner_hold_all_of_it_and_no_tests(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "hub", tmp_path / "hub", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    venv = Path(sys.executable).parents[1]
    offline = ("env", "PIP_NO_INDEX=1", "PIP_NO_BUILD_ISOLATION=0")
    run(*offline, "make", "spawner", f"VENV={venv}", f"--old-file={venv}/.installed", cwd=tmp_path)
    [source] = (tmp_path / "dist").glob("*.tar.gz")
    assert source.name == f"jupyterhub_vkprovider-{__version__}.tar.gz"
    home = ROOT / "hub"
    held_files = [path for kind in ("*.py", "*.html") for path in (home / "src").rglob(kind)]
    code = {path.relative_to(home / "src").as_posix() for path in held_files} | {"jupyterhub_vkprovider/py.typed"}
    with tarfile.open(source) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    assert {f"src/{name}" for name in code} | {"README.md", "LICENSE", "zero-to-jupyterhub.yaml"} <= names
    assert not [name for name in names if name.startswith("tests")]
    with zipfile.ZipFile(tmp_path / "dist" / f"jupyterhub_vkprovider-{__version__}-py3-none-any.whl") as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
        [points] = [name for name in archive.namelist() if name.endswith("/entry_points.txt")]
        assert "vkprovider = jupyterhub_vkprovider.spawner:VkproviderSpawner" in archive.read(points).decode()
    assert held == code


def test_the_product_alone_runs_without_the_sandbox(product: Path, tmp_path: Path) -> None:
    script = "import sys; sys.modules.update(vkpsandbox=None, vkpsim=None); from vkprovider.cli.main import main; "
    for command in ("run", "doctor", "crds"):
        assert "Usage" in run(product / "python", "-c", script + f"main(['{command}', '--help'])", cwd=tmp_path)


def test_commands_run_from_elsewhere(installed: Path, tmp_path: Path) -> None:
    assert run(installed / "vkprovider", "--version", cwd=tmp_path) == f"vkprovider, version {__version__}\n"
    text = run(installed / "vkprovider", "crds", cwd=tmp_path)
    assert text.count("kind: CustomResourceDefinition") == 2
    offered = run(installed / "vkprovider", "--help", cwd=tmp_path)
    assert all(command in offered for command in ("demo", "sandbox", "sim"))


def test_plugin_and_its_completion_are_programs(product: Path, tmp_path: Path) -> None:
    assert run(product / "kubectl-lablet", "--version", cwd=tmp_path) == f"kubectl lablet, version {__version__}\n"
    assert run(product / "kubectl_complete-lablet", "rel", cwd=tmp_path).splitlines()[1:] == [":4"]


def test_sandbox_finds_its_data_in_the_wheel(installed: Path, tmp_path: Path) -> None:
    script = """
import json, vkprovider
from vkpsandbox.demo.mux import LABLETS
from vkpsandbox.controlplane.build import module_files
from vkpsandbox.controlplane.versions import kubernetes_version
from vkprovider.platform.shipped import find_manifests
version = kubernetes_version(module_files()[0])
LABLETS.read_text()
print(json.dumps([vkprovider.__file__, str(find_manifests()), str(find_manifests() / "examples"), version]))
"""
    package, manifests, examples, version = json.loads(run(installed / "python", "-c", script, cwd=tmp_path))
    home = installed.parent
    assert Path(package).is_relative_to(home)
    assert Path(manifests).is_relative_to(home)
    assert Path(examples, "affinity.yaml").is_relative_to(home)
    assert version.startswith("v1.37.")
