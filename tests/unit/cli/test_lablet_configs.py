"""What `kubectl lablet configs` makes of what a learner left."""

from pathlib import Path
from typing import Any

import click
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vkprovider.classroom.work import files_of, folders_of
from vkprovider.cli.lablet.configs import _of_device, configs
from vkprovider.cli.shared.page.options import PageOptions
from vkprovider.cli.shared.place import Place
from vkprovider.lablet.archives import Leftovers

LEFT = Leftovers(
    "team", "a", "u", "netlab", "1.0", configs={"r1": "hostname r1", "R 2": "x"}, faults={"r3": "it is off"}
)


def test_each_device_gets_a_file() -> None:
    assert files_of(LEFT) == {"R-2.cfg": "x", "r1.cfg": "hostname r1"}
    answered = msgspec.structs.replace(LEFT, responses={"q1": 42})
    assert files_of(answered)["responses.json"] == '{\n  "q1": 42\n}\n'


def test_labels_that_make_one_name_get_files_of_their_own() -> None:
    left = msgspec.structs.replace(LEFT, configs={"a b": "1", "a-b": "2", "A-B": "3", "..": "4", "../../x": "5"})
    files = files_of(left)
    assert sorted(files.values()) == ["1", "2", "3", "4", "5"]
    assert len({name.lower() for name in files}) == 5


@given(labels=st.sets(st.text(max_size=130), max_size=8))
def test_no_label_leads_out_of_the_directory(labels: set[str]) -> None:
    files = files_of(msgspec.structs.replace(LEFT, configs={label: label for label in labels}))
    assert sorted(files.values()) == sorted(labels)
    for name in files:
        assert Path(name).name == name
        assert not name.startswith((".", "-"))
        assert len(name.encode()) < 255
        assert not set(name) & set('/\\:*?"<>|\0 ')


def test_one_device_alone() -> None:
    assert _of_device(LEFT, "r1").configs == {"r1": "hostname r1"}
    assert _of_device(LEFT, None) is LEFT


@pytest.mark.parametrize(("device", "says"), [("r3", "it is off"), ("r9", "it kept those of R 2, r1")])
def test_device_that_left_nothing(device: str, says: str) -> None:
    with pytest.raises(click.ClickException, match=says):
        _of_device(LEFT, device)


def test_a_class_has_a_folder_for_each_learner_wherever_names_lead() -> None:
    names = (
        "alice",
        "Alice",
        "../../etc",
        "...",
        "a/b",
        "a-b",
        "m\u00fcller",
        "M\u00dcLLER",
        "\u674e\u96f7",
        "\u00e9" * 300,
    )
    found = folders_of([msgspec.structs.replace(LEFT, username=name, configs={"r1": name}) for name in names])
    assert found == {
        "alice/r1.cfg": "alice",
        "Alice-2/r1.cfg": "Alice",
        "etc/r1.cfg": "../../etc",
        "learner/r1.cfg": "...",
        "a-b/r1.cfg": "a/b",
        "a-b-2/r1.cfg": "a-b",
        "m\u00fcller/r1.cfg": "m\u00fcller",
        "M\u00dcLLER-2/r1.cfg": "M\u00dcLLER",
        "\u674e\u96f7/r1.cfg": "\u674e\u96f7",
        "\u00e9" * 100 + "/r1.cfg": "\u00e9" * 300,
    }


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "name a POD, a UID or, with -u, a learner; or several with -l or --all"),
        ({"selector": "class=a"}, "--dir FOLDER, or --zip FILE"),
        ({"every": True, "directory": "x", "archive": "y"}, "--dir FOLDER, or --zip FILE"),
        ({"every": True, "selector": "class=a", "directory": "x"}, "leave out POD"),
        ({"what": "a", "selector": "class=a", "directory": "x"}, "leave out POD"),
        ({"learner": "alice", "every": True, "directory": "x"}, "leave out POD"),
        ({"what": "a", "archive": "x.zip"}, "--zip is for a class"),
        ({"what": "a", "directory": "x", "output": "json"}, "exclude each other"),
    ],
)
def test_options_that_do_not_go_together(options: dict[str, Any], says: str) -> None:
    given: dict[str, Any] = {"what": None, "learner": None, "selector": "", "every": False, "device": None}
    given |= {
        "directory": None,
        "archive": None,
        "output": "text",
        "provider_namespace": "",
        "page": PageOptions(),
        "place": Place(None, None),
    }
    with pytest.raises(click.UsageError, match=says):
        configs(**{**given, **options})
