"""Pages and manifests made from the code are complete and up to date."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tools import crdpage, generate
from vkprovider.lablet.models.crd import structural
from vkprovider.lablet.models.fields import Model
from vkprovider.portal.pure.config import PortalConfig
from vkprovider.prepull.config import PrepullConfig


def test_every_setting_is_described() -> None:
    page = generate.settings_page()
    fields = [each for group in generate.groups() for each in generate.variables(group).items()]
    for name, field in fields:
        assert field.description, name
    assert page.count("\n| `") == len(fields) >= 50


def fields_of(schema: Any) -> Iterator[tuple[str, Any]]:
    """Yield every field below a schema, however deep, with its own schema."""
    if isinstance(schema, list):
        for each in schema:
            yield from fields_of(each)
    if isinstance(schema, dict):
        yield from schema.get("properties", {}).items()
        for each in schema.values():
            yield from fields_of(each)


@pytest.mark.parametrize("model", [PortalConfig, PrepullConfig])
def test_every_field_of_a_file_is_described_and_on_its_page(model: type[Model]) -> None:
    page, fields = crdpage.files_page(), list(fields_of(structural(model)))
    assert {"numReleases", "pins", "aliasTags"} <= {name for name, _ in fields}
    for name, field in fields:
        assert field.get("description"), name
        assert re.search(rf"`([^`]*\.)?{name}`\S* \|", page), name


def test_check_finds_a_stale_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(generate, "ROOT", tmp_path)
    assert generate.main(["--check"]) == 1
    assert "docs/reference/settings.md is not as generated: run `make generate`" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())
    assert generate.main([]) == 0
    assert generate.main(["--check"]) == 0
    assert generate.main(["--wrong"]) == 2
