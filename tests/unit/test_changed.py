"""Whether the simulators' own tests run in `make test`: histories of a made-up checkout, and what is compared."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.changed import ROOT, WATCHED, base, is_changed

Git = Callable[..., str]
SIMULATOR = "vkpsim/cml/world.py"


@pytest.fixture
def git(tmp_path: Path) -> Git:
    """Runs git in a checkout of `main` with one commit."""

    def run(*arguments: str) -> str:
        command = ["git", "-C", str(tmp_path), "-c", "user.name=x", "-c", "user.email=x@example.com", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603 (git)

    run("init", "--quiet", "--initial-branch=main")
    commit(run, tmp_path, SIMULATOR)
    return run


def write(home: Path, name: str) -> None:
    path = home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{path.read_text()}\n1" if path.exists() else "0")


def commit(git: Git, home: Path, name: str) -> str:
    write(home, name)
    git("add", "--all")
    git("commit", "--quiet", "--message=x")
    return git("rev-parse", "HEAD")


def test_every_watched_path_is_there() -> None:
    assert [path for path in WATCHED if not (ROOT / path).exists()] == []


@pytest.mark.usefixtures("git")
def test_without_a_history_only_what_is_not_committed_is_a_change(tmp_path: Path) -> None:
    assert base(tmp_path) == "HEAD"
    assert not is_changed(tmp_path, "HEAD")
    write(tmp_path, SIMULATOR)
    assert is_changed(tmp_path, "HEAD")


@pytest.mark.parametrize(
    ("name", "changed"),
    [("vkpsim/new.py", True), ("tests/simulators/lds/test_new.py", True), ("vkprovider/new.py", False)],
)
@pytest.mark.usefixtures("git")
def test_a_new_file_is_a_change_where_it_is_watched(tmp_path: Path, name: str, *, changed: bool) -> None:
    write(tmp_path, name)
    assert is_changed(tmp_path, base(tmp_path)) == changed


def test_a_branch_is_compared_with_where_it_left_main(git: Git, tmp_path: Path) -> None:
    left = git("rev-parse", "HEAD")
    git("checkout", "--quiet", "-b", "topic")
    commit(git, tmp_path, "vkprovider/x.py")
    git("checkout", "--quiet", "main")
    commit(git, tmp_path, SIMULATOR)  # of somebody else
    git("checkout", "--quiet", "topic")
    assert base(tmp_path) == left
    assert not is_changed(tmp_path, left)
    commit(git, tmp_path, "constraints.txt")
    commit(git, tmp_path, "vkprovider/y.py")
    assert base(tmp_path) == left
    assert is_changed(tmp_path, left)


def test_commits_of_main_are_compared_with_what_was_pushed(git: Git, tmp_path: Path) -> None:
    pushed = git("rev-parse", "HEAD")
    git("update-ref", "refs/remotes/origin/main", pushed)
    commit(git, tmp_path, SIMULATOR)
    commit(git, tmp_path, "README.md")
    assert base(tmp_path) == pushed
    assert is_changed(tmp_path, pushed)


def test_main_as_pushed_is_compared_with_the_last_release_or_the_commit_before(git: Git, tmp_path: Path) -> None:
    first = commit(git, tmp_path, SIMULATOR)
    git("update-ref", "refs/remotes/origin/main", commit(git, tmp_path, "README.md"))
    assert base(tmp_path) == first
    assert not is_changed(tmp_path, first)
    git("tag", "v0.1.0", f"{first}^")
    assert base(tmp_path) == "v0.1.0"
    assert is_changed(tmp_path, "v0.1.0")


def test_what_is_no_checkout_of_git_has_no_changes(tmp_path: Path) -> None:
    write(tmp_path, SIMULATOR)
    assert base(tmp_path) == "HEAD"
    assert not is_changed(tmp_path, "HEAD")
