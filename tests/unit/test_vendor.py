"""What the site serves of others is what the list says, byte for byte, with its license."""

import io
import shutil
import tarfile
from pathlib import Path

import msgspec
import pytest

from tools.vendor.fetching import Tampered, _checked
from tools.vendor.packages import FOLDER, LICENSES, faults, read


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    return Path(shutil.copytree(FOLDER, tmp_path / "vendor"))


def test_the_checkout_is_as_the_list_says() -> None:
    assert faults(read()) == []


def test_a_changed_file_is_named(copied: Path) -> None:
    with (copied / "xterm.js").open("a") as file:
        file.write("alert(1)")
    (said,) = faults(read(), copied)
    assert said.startswith("xterm.js has the hash ")


def test_a_missing_and_a_foreign_file_are_named(copied: Path) -> None:
    (copied / "xterm.css").unlink()
    (copied / "jquery.js").write_text("")
    assert faults(read(), copied) == ["xterm.css is missing", "jquery.js is in no package of the list"]


def test_a_file_without_its_license_is_named(copied: Path) -> None:
    (copied / LICENSES).write_text("none\n")
    assert faults(read(), copied) == [
        f"{LICENSES} lacks @xterm/xterm 6.0.0 (MIT)",
        f"{LICENSES} lacks @xterm/addon-fit 0.11.0 (MIT)",
        f"{LICENSES} lacks @novnc/novnc 1.7.0 (MPL-2.0)",
    ]


def test_a_package_with_another_hash_is_not_unpacked() -> None:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz"):
        pass
    package = msgspec.structs.replace(read()[0], integrity="sha512-AAAA")
    with pytest.raises(Tampered, match=r"@xterm/xterm@6\.0\.0 is sha512-"):
        _checked(package, content.getvalue())
