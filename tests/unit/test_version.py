"""One version, wherever it stands, in the way of writing that each reader knows; and the files of a release have it."""

import re
import subprocess

import pytest

from tools.helm.chart import semver
from tools.render import ROOT
from vkprovider import __version__

SEMVER = semver(__version__)


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("0.2.0", "0.2.0"),
        ("0.2.0.dev0", "0.2.0-dev.0"),
        ("0.2.0rc1", "0.2.0-rc.1"),
        ("10.20.30.dev12", "10.20.30-dev.12"),
    ],
)
def test_helm_and_krew_are_told_the_version_in_semver(version: str, said: str) -> None:
    assert semver(version) == said


@pytest.mark.parametrize("version", ["0.2", "0.2.0-dev.0", "0.2.0.post1", "0.2.0a1", "v0.2.0", ""])
def test_a_version_that_semver_cannot_order_is_refused(version: str) -> None:
    with pytest.raises(ValueError, match="needs a version of semver"):
        semver(version)


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("pyproject.toml", f'version = "{__version__}"'),
        ("hub/pyproject.toml", f'version = "{__version__}"'),
        ("vkpsandbox/pyproject.toml", f'version = "{__version__}"'),
        ("vkpsandbox/pyproject.toml", f'  "vkprovider=={__version__}",'),
        ("vkpsandbox/pyproject.toml", f'  "vkprovider-simulators=={__version__}",'),
        ("vkpsim/pyproject.toml", f'version = "{__version__}"'),
        ("manifests/deployment/kustomization.yaml", f"  newTag: {__version__}"),
        ("manifests/components/mux/kustomization.yaml", f"  newTag: {__version__}"),
        ("manifests/components/portal/kustomization.yaml", f"  newTag: {__version__}"),
        ("manifests/components/relay/kustomization.yaml", f"  newTag: {__version__}"),
        ("manifests/krew/lablet.yaml", f"  version: v{SEMVER}"),
        ("manifests/helm/vkprovider/Chart.yaml", f"version: {SEMVER}"),
        ("manifests/helm/vkprovider/Chart.yaml", f'appVersion: "{__version__}"'),
        ("docs/install.md", f"    make image IMAGE=registry.example.com/vkprovider:{__version__}"),
        ("docs/tunnels.md", f"    /opt/vkprovider/bin/pip install vkprovider-{__version__}-py3-none-any.whl"),
    ],
)
def test_each_file_has_the_version(file: str, line: str) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    assert re.search(rf"^{re.escape(line)}", text, re.MULTILINE)


def test_the_changelog_has_what_is_to_come_and_what_was_released() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    to_come, *released = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert to_come == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d{2}-\d{2}", each) for each in released), released
    dates = [each.split(" - ")[1] for each in released]
    assert dates == sorted(dates, reverse=True)


def test_the_files_of_a_release_are_named_by_it() -> None:
    # A make in which this runs has it say further lines before.
    command = ["make", "--eval=named: ; @echo $(RELEASED)", "--no-print-directory", "URL=https://example.com", "named"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)  # noqa: S603 (make)
    assert said.stdout.splitlines()[-1].split() == [
        f"vkprovider-{__version__}-py3-none-any.whl",
        f"vkprovider-{__version__}.cdx.json",
        f"vkprovider-{SEMVER}.tgz",
        f"kubectl-lablet-{__version__}.tar.gz",
        f"jupyterhub_vkprovider-{__version__}.tar.gz",
        f"jupyterhub_vkprovider-{__version__}-py3-none-any.whl",
        f"install-{__version__}.yaml",
        "lablet.yaml",
    ]
