"""Pages and manifests made from the code are complete and up to date."""

from pathlib import Path

import pytest

from tools import generate


def test_every_setting_is_described() -> None:
    page = generate.settings_page()
    fields = [each for group in generate.groups() for each in generate.variables(group).items()]
    for name, field in fields:
        assert field.description, name
    assert page.count("\n| `") == len(fields) >= 50


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
