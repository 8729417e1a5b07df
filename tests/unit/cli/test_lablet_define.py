"""Which definition `kubectl lablet define` makes of a file, and what it refuses."""

from pathlib import Path
from typing import Any

import click
import pytest

from tests.support.topologies import topology
from vkprovider.classroom.definitions import DefiningError, DefinitionWrite, _next, owner, plan
from vkprovider.cli.lablet.define import _checked, _named
from vkprovider.platform.objects import CustomResource, Metadata

OLD, NEW = "lab: 1", "lab: 2"


def existing(
    version: str = "1.0.0", source: dict[str, Any] | None = None, *kept: str, owner: str = ""
) -> CustomResource:
    status = {"versions": [{"version": each, "digest": each} for each in kept]}
    meta = Metadata("a", labels={"vkprovider.io/owner-namespace": owner} if owner else {})
    return CustomResource(meta, {"version": version, "source": source or {"inline": OLD}}, status)


KEPT = {"configMap": {"namespace": "friday", "name": "a-1"}}


@pytest.mark.parametrize(
    ("found", "version", "text", "change"),
    [
        (None, None, NEW, DefinitionWrite(is_new=True, version="1.0.0")),
        (None, "2.1", NEW, DefinitionWrite(is_new=True, version="2.1")),
        (existing(), None, OLD, None),
        (existing(), "1.0.0", OLD, None),
        (existing(), "1.0.1", OLD, DefinitionWrite(is_new=False, version="1.0.1")),
        (existing("1.0.0", None, "1.0.0", "0.9"), "1.1.0", NEW, DefinitionWrite(is_new=False, version="1.1.0")),
    ],
)
def test_what_is_written(
    found: CustomResource | None, version: str | None, text: str, change: DefinitionWrite | None
) -> None:
    content = found.spec["source"]["inline"] if found is not None else None
    assert plan(found, content, "a", version, text, keeps=False) == change


@pytest.mark.parametrize(
    ("source", "version", "text", "keeps", "change"),
    [
        (KEPT, None, OLD, True, None),
        (KEPT, "1.0.1", NEW, True, DefinitionWrite(is_new=False, version="1.0.1")),
        (KEPT, None, OLD, False, DefinitionWrite(is_new=False, version="1.0.0")),
        (None, None, OLD, True, DefinitionWrite(is_new=False, version="1.0.0")),
    ],
)
def test_a_topology_moves_between_the_class_and_all(
    source: dict[str, Any] | None,
    version: str | None,
    text: str,
    keeps: bool,  # noqa: FBT001 (a row)
    change: DefinitionWrite | None,
) -> None:
    assert plan(existing("1.0.0", source, owner="friday"), OLD, "a", version, text, keeps=keeps) == change


@pytest.mark.parametrize(
    ("found", "limited", "whose"),
    [
        (None, True, "friday"),
        (None, False, ""),
        (existing(owner="friday"), True, "friday"),
        (existing(owner="monday"), False, "monday"),
        (existing(), False, ""),
    ],
)
def test_whose_a_definition_is(found: CustomResource | None, limited: bool, whose: str) -> None:  # noqa: FBT001 (a row)
    assert owner(found, "a", "friday", limited=limited) == whose


@pytest.mark.parametrize(
    ("whose", "says"), [("monday", "of namespace monday; change it with -n monday"), ("", "the admins; ask them")]
)
def test_another_class_keeps_its_own(whose: str, says: str) -> None:
    with pytest.raises(DefiningError, match=says):
        owner(existing(owner=whose), "a", "friday", limited=True)


@pytest.mark.parametrize(
    ("found", "version", "says"),
    [
        (existing(), None, "has other content as version 1.0.0; name a new version: --version 1.0.1"),
        (existing(), "1.0.0", "name a new version: --version 1.0.1"),
        (existing("1.0.1", None, "1.0.1", "1.0.0"), "1.0.0", "as version 1.0.0; name a new version: --version 1.0.2"),
        (existing("1", {"objectStore": {}}), "2", "change it there, and run: kubectl lablet refresh a"),
    ],
)
def test_content_of_a_version_is_never_replaced(found: CustomResource, version: str | None, says: str) -> None:
    with pytest.raises(DefiningError, match=says):
        plan(found, found.spec["source"].get("inline"), "a", version, NEW, keeps=False)


@pytest.mark.parametrize(
    ("version", "following"), [("1.0.9", "1.0.10"), ("v2", "v3"), ("2026-rc1", "2026-rc2"), ("final", "final.1")]
)
def test_the_next_version(version: str, following: str) -> None:
    assert _next(version, {version}) == following


@pytest.mark.parametrize(
    ("file", "name", "found"), [("x/Branch Office.yaml", None, "branch-office"), ("-", "netlab", "netlab")]
)
def test_the_name_is_the_files(file: str, name: str | None, found: str) -> None:
    assert _named(file, name) == found


@pytest.mark.parametrize(("file", "name"), [("-", None), ("x/ü.yaml", None), ("a.yaml", "Net Lab"), ("a", "x" * 60)])
def test_what_cannot_be_a_name(file: str, name: str | None) -> None:
    with pytest.raises(click.UsageError, match="give one: --name netlab"):
        _named(file, name)


def test_a_topology_is_checked_as_the_provider_does(capsys: pytest.CaptureFixture[str]) -> None:
    found = _checked(topology({"r1": "iosv"}, {"r1": ["seriel:5000"]}), str(Path("cml.yaml")))
    assert len(found.devices) == 1
    assert "cml.yaml: tag 'seriel:5000' of 'r1' requests no port" in capsys.readouterr().err
    for text in ("lab: [", "nothing", "lab: {}\nnodes: 3\nlinks: []"):
        with pytest.raises(click.ClickException, match=r"cml\.yaml: "):
            _checked(text, "cml.yaml")
