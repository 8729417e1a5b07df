"""The files, command lines and images of an ordinary Node, and the reason why there is none."""

import io
import json
import tarfile
from hashlib import sha256
from pathlib import Path

import pytest

from vkpsandbox.errors import SandboxError
from vkpsandbox.node import needs, room, runtime
from vkpsandbox.paths import Layout
from vkpsandbox.processes.record import OrdinaryNode

NODE = OrdinaryNode(7)


def test_what_is_missing_is_one_sentence_with_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert needs.missing() == "an ordinary Node needs root, for namespaces and containers: run the command by sudo"
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(needs, "_FURTHER", ())
    said = needs.missing()
    assert said.startswith("an ordinary Node needs programs of the system: apt-get install catatonit containerd")
    assert "\n" not in said
    with pytest.raises(SandboxError, match="apt-get install"):
        needs.require(Layout(tmp_path))


def test_a_sandbox_that_the_node_could_not_see_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "missing", lambda: "")
    with pytest.raises(SandboxError, match="/var/lib"):
        needs.require(Layout(Path("/var/lib/sandbox")))


def test_each_sandbox_has_addresses_and_a_cgroup_of_its_own(tmp_path: Path) -> None:
    other = OrdinaryNode(8)
    assert not {NODE.host, NODE.address, NODE.pods, NODE.workers, NODE.interface} & {
        other.host,
        other.address,
        other.pods,
        other.workers,
        other.interface,
    }
    assert NODE.worker_endpoints(2) == [("198.18.7.129", 8443), ("198.18.7.130", 8443)]
    with pytest.raises(SandboxError, match="room for 126 workers"):
        NODE.worker_endpoints(127)
    assert room.cgroup_of(Layout(tmp_path / "a")) != room.cgroup_of(Layout(tmp_path / "b"))


def test_an_image_of_static_programs_is_an_oci_layout(tmp_path: Path) -> None:
    program = tmp_path / "pause"
    program.write_bytes(b"\x7fELF")
    archive = runtime.image("localhost/pause:1", {"pause": program}, ["/pause"])
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        files = {each.name: opened.extractfile(each).read() for each in opened}  # type: ignore[union-attr]  # (all are files)
    [manifest] = json.loads(files["index.json"])["manifests"]
    assert manifest["annotations"]["io.containerd.image.name"] == "localhost/pause:1"
    for path, content in files.items():
        if path.startswith("blobs/"):
            assert path == f"blobs/sha256/{sha256(content).hexdigest()}"
    [layer] = json.loads(files[f"blobs/{manifest['digest'].replace(':', '/')}"])["layers"]
    with tarfile.open(fileobj=io.BytesIO(files[f"blobs/{layer['digest'].replace(':', '/')}"])) as opened:
        [entry] = opened
        assert (entry.name, entry.mode) == ("pause", 0o755)
