"""The recorder of `tools.walk`: it collects files from a Pod's ADDED until the import is sent."""

import json
import sys
from pathlib import Path
from types import ModuleType

from tools.walk import Recorder

CONTROLLER = "def pod_changed(old, new):\n    pass\n\ndef other():\n    pass\n"
DIRECT = "def request(method, path):\n    pass\n"


def load(path: str, text: str) -> ModuleType:
    module = ModuleType(path)
    exec(compile(text, f"/checkout/{path}", "exec"), module.__dict__)  # noqa: S102 (functions with a path of their own)
    return module


def test_a_walk_ends_with_the_import_and_holds_the_files_in_between(tmp_path: Path) -> None:
    index = load("vkprovider/controllers/lablet/index.py", CONTROLLER)
    effects = load("vkprovider/controllers/lablet/effects.py", CONTROLLER)
    foreign = load("elsewhere/x.py", CONTROLLER)
    direct = load("tunnels/direct.py", DIRECT)
    before = sys.getprofile()
    sys.setprofile(Recorder(tmp_path / "walks"))
    try:
        index.pod_changed("old", "new")
        direct.request("POST", "/import")
        index.pod_changed(None, "new")
        foreign.other()
        direct.request("GET", "/labs")
        effects.other()
        direct.request("POST", "/import")
        direct.request("POST", "/import")
    finally:
        sys.setprofile(before)
    [walk] = (tmp_path / "walks").read_text().splitlines()
    assert {"vkprovider/controllers/lablet/effects.py", "tunnels/direct.py"} < set(json.loads(walk))
    assert not [file for file in json.loads(walk) if "elsewhere" in file]
