"""The krew manifest, by the rules of krew's own validation (internal/index/validation/validate.go)."""

import hashlib
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools import krew
from vkprovider import __version__
from vkprovider.cli.lablet import group

TEXT = krew.MANIFEST.read_text()


def check(manifest: dict[str, Any]) -> None:
    """What krew refuses fails."""
    assert (manifest["apiVersion"], manifest["kind"]) == ("krew.googlecontainertools.github.com/v1alpha2", "Plugin")
    assert re.fullmatch(r"[\w-]+", manifest["metadata"]["name"])
    assert manifest["metadata"]["name"] == krew.MANIFEST.stem
    spec = manifest["spec"]
    assert re.fullmatch(r"v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?", spec["version"]), "krew wants a semantic version with v"
    assert spec["shortDescription"]
    assert "\n" not in spec["shortDescription"]
    assert spec["platforms"]
    for platform in spec["platforms"]:
        assert platform["uri"].startswith("https://")
        assert re.fullmatch(r"[a-f0-9]{64}", platform["sha256"])
        selector = platform["selector"]
        keys = [*selector.get("matchLabels", {}), *(need["key"] for need in selector.get("matchExpressions", []))]
        assert keys
        assert set(keys) <= {"os", "arch"}
        assert all(step["from"] and step["to"] for step in platform.get("files", [{"from": "*", "to": "."}]))


def test_manifest_is_krews_and_of_this_version() -> None:
    manifest = yaml.safe_load(TEXT)
    check(manifest)
    assert manifest["spec"]["version"] == f"v{__version__}"
    [platform] = manifest["spec"]["platforms"]
    assert platform["uri"].endswith(f"/v{__version__}/{krew.archive_name()}")
    assert platform["bin"] == group.PROGRAM
    assert f"kubectl-{manifest['metadata']['name']}" == group.PROGRAM


def test_a_release_fills_it_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive = tmp_path / krew.archive_name()
    archive.write_bytes(b"the archive")
    assert krew.main([str(archive), "https://downloads.example.com/v1/"]) == 0
    manifest = yaml.safe_load(capsys.readouterr().out)
    check(manifest)
    [platform] = manifest["spec"]["platforms"]
    assert platform["uri"] == f"https://downloads.example.com/v1/{krew.archive_name()}"
    assert platform["sha256"] == hashlib.sha256(b"the archive").hexdigest()


def test_an_archive_of_another_version_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "kubectl-lablet-0.0.0.tar.gz"
    assert krew.main([str(other), "https://downloads.example.com"]) == 1
    assert f"is not the archive of version {__version__}" in capsys.readouterr().err
    assert krew.main([]) == 2
