import base64
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from vkprovider.platform.errors import InputError
from vkprovider.platform.kube.http import kubeconfig


def config(name: str, **user: Any) -> dict[str, Any]:
    return {
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": f"ns-{name}"}}],
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}:6443"}}],
        "users": [{"name": name, "user": user}],
    }


def write(path: Path, document: Any) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(document if isinstance(document, str) else yaml.safe_dump(document))
    return str(path)


def test_the_current_context_is_taken(tmp_path: Path) -> None:
    entry = kubeconfig.read(write(tmp_path / "a", config("a", token="t")))
    assert (entry.context, entry.namespace) == ("a", "ns-a")
    assert entry.cluster["server"] == "https://a:6443"
    assert entry.user == {"token": "t"}


def test_several_files_are_merged_and_the_first_wins(tmp_path: Path) -> None:
    one = config("a", token="first")
    two = config("b", token="second")
    two["users"].append({"name": "a", "user": {"token": "shadowed"}})
    paths = os.pathsep.join([write(tmp_path / "one", one), str(tmp_path / "missing"), "", write(tmp_path / "two", two)])
    assert kubeconfig.read(paths).user == {"token": "first"}
    assert kubeconfig.read(paths, "b").user == {"token": "second"}


def test_a_context_may_span_files(tmp_path: Path) -> None:
    whole = config("a", token="t")
    parts = [{key: whole[key]} for key in whole]
    paths = os.pathsep.join(write(tmp_path / str(n), part) for n, part in enumerate(parts))
    assert kubeconfig.read(paths).user == {"token": "t"}


def test_paths_count_from_the_file_they_are_written_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "token").write_text("t")
    document = config("a", tokenFile="token", **{"client-key": "/abs/key", "client-certificate": ""})
    path = write(tmp_path / "deep" / "config", document)
    monkeypatch.chdir(tmp_path)
    user = kubeconfig.read(os.path.relpath(path)).user
    assert user["tokenFile"] == str(tmp_path / "deep" / "token")
    assert user["client-key"] == "/abs/key"
    assert "client-certificate" not in user  # an empty field is none


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ("a: [", "line"),
        ("- a", "not a mapping"),
        ("", "no current-context"),
        ({**config("a"), "current-context": "b"}, "there are: a"),
        ({**config("a"), "clusters": []}, "no cluster with a server"),
        ({**config("a"), "clusters": [{"name": "a", "cluster": {}}]}, "no cluster with a server"),
        ({**config("a"), "users": [{"name": "a", "user": "token"}]}, "users[].user is not a mapping"),
        ({**config("a"), "contexts": None}, "there are: none"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, document: Any, says: str) -> None:
    with pytest.raises(InputError) as caught:
        kubeconfig.read(write(tmp_path / "config", document))
    assert caught.value.reason == "KubeconfigInvalid"
    assert says in caught.value.message


def test_a_broken_file_does_not_leak_its_secrets(tmp_path: Path) -> None:
    path = write(tmp_path / "config", "users:\n- name: a\n  user: {token: hunter2, hunter2: [}\n")
    with pytest.raises(InputError) as caught:
        kubeconfig.read(path)
    assert "hunter2" not in str(caught.value)
    assert "line 3" in caught.value.message


def test_no_file_at_all_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        kubeconfig.read(str(tmp_path / "none"))
    assert caught.value.reason == "KubeconfigMissing"


def test_inline_data_wins_over_a_file(tmp_path: Path) -> None:
    (tmp_path / "ca").write_bytes(b"file")
    fields = {"ca": str(tmp_path / "ca"), "ca-data": base64.b64encode(b"inline").decode()}
    assert kubeconfig.inline_or_file(fields, "ca") == b"inline"
    assert kubeconfig.inline_or_file({"ca": fields["ca"]}, "ca") == b"file"
    assert kubeconfig.inline_or_file({}, "ca") is None


@pytest.mark.parametrize("fields", [{"ca-data": "no base64!"}, {"ca": "/nowhere/ca.crt"}])
def test_unreadable_data_is_said(fields: dict[str, str]) -> None:
    with pytest.raises(InputError):
        kubeconfig.inline_or_file(fields, "ca")
