"""`.ci/setup judges`: each judge is installed once, again when its line changes; without network it goes on."""

import shutil
import subprocess
from pathlib import Path

import pytest

SETUP = Path(__file__).parents[4] / ".ci" / "setup"
PIP = """#!/bin/sh
echo "$@" >>"$VENV/calls"
[ ! -e "$VENV/offline" ] || exit 1
for word; do [ "$last" != --target ] || mkdir -p "$word/package"; last=$word; done
"""
"""A pip that makes the folder that it is told, and notes how it was called."""

NPM = """#!/bin/sh
echo "$@" >>"$VENV/npm-calls"
[ ! -e "$VENV/offline" ] || exit 1
for word; do [ "$last" != --prefix ] || mkdir -p "$word/node_modules"; last=$word; done
"""
"""An npm that does the same."""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Make a checkout with a list of two judges and an environment."""
    (tmp_path / "tests/simulators/cml").mkdir(parents=True)
    (tmp_path / "tests/simulators/cml/judges.txt").write_text(
        "# a comment\nold-1.0  client==1.0 other==2\nnew-2.0 client==2.0\n"
    )
    (tmp_path / "tests/support").mkdir()
    (tmp_path / "tests/support/package.json").write_text("{}")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/npm").write_text(NPM)
    (tmp_path / "bin/npm").chmod(0o755)
    (tmp_path / ".ci").mkdir()
    shutil.copy(SETUP, tmp_path / ".ci/setup")
    (tmp_path / "venv/bin").mkdir(parents=True)
    (tmp_path / "venv/bin/python").write_text(PIP)
    (tmp_path / "venv/bin/python").chmod(0o755)
    return tmp_path


def install(checkout: Path, first: str = "") -> str:
    """Run it, with a folder before the others of PATH; return what it says."""
    environment = {"PATH": f"{first}:{checkout}/bin:/usr/bin:/bin", "VENV": str(checkout / "venv")}
    command = ["/bin/sh", ".ci/setup", "judges"]
    done = subprocess.run(  # noqa: S603 (our own script)
        command, cwd=checkout, env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    return done.stderr


def calls(checkout: Path) -> list[str]:
    return (checkout / "venv/calls").read_text().splitlines()


def test_each_judge_is_installed_once_in_a_folder_of_its_own(checkout: Path) -> None:
    assert "client==1.0 other==2" in install(checkout)
    assert {folder.name for folder in (checkout / "venv/judges").iterdir()} == {"old-1.0", "new-2.0", "page"}
    assert [call.endswith(("client==1.0 other==2", "client==2.0")) for call in calls(checkout)] == [True, True]
    assert install(checkout) == ""
    assert len(calls(checkout)) == 2
    assert len((checkout / "venv/npm-calls").read_text().splitlines()) == 1


def test_a_changed_list_installs_the_judges_of_pages_again(checkout: Path) -> None:
    install(checkout)
    (checkout / "tests/support/package.json").write_text('{"private": true}')
    assert "judges/page: installing axe-core, oidc-provider and vnu-jar" in install(checkout)
    assert (checkout / "venv/judges/page/package.json").read_text() == '{"private": true}'
    assert len(calls(checkout)) == 2


def test_a_changed_line_installs_its_judge_again(checkout: Path) -> None:
    install(checkout)
    listed = checkout / "tests/simulators/cml/judges.txt"
    listed.write_text(listed.read_text().replace("client==2.0", "client==2.1"))
    assert "new-2.0: installing client==2.1" in install(checkout)
    assert len(calls(checkout)) == 3


def test_a_machine_without_network_goes_on_and_gets_them_later(checkout: Path) -> None:
    (checkout / "venv/offline").touch()
    said = install(checkout)
    assert "the tests by old-1.0 are skipped, but fail where CI is set" in said
    assert "the tests that judge pages or need an issuer are skipped, but fail where CI is set" in said
    assert not list((checkout / "venv").glob("judges/*"))
    (checkout / "venv/offline").unlink()
    install(checkout)
    assert (checkout / "venv/judges/new-2.0/package").is_dir()
    assert (checkout / "venv/judges/page/node_modules").is_dir()


def test_a_long_installation_says_for_how_long_it_has_run(checkout: Path) -> None:
    """What pip answers is still its exit code: a judge that fails after a while is not taken for installed."""
    (checkout / "sleep").write_text("#!/bin/sh\nexec /bin/sleep 0.1\n")
    (checkout / "sleep").chmod(0o755)
    (checkout / "tests/simulators/cml/judges.txt").write_text("slow-1.0 client==1.0\n")
    (checkout / "venv/bin/python").write_text("#!/bin/sh\n/bin/sleep 3\nexit 1\n")
    said = install(checkout, first=str(checkout))
    assert "slow-1.0: installing client==1.0\n  10 s so far\n  20 s so far\n" in said
    assert "that failed: the tests by slow-1.0 are skipped" in said
