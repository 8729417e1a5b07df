import fcntl
import stat
import time
from pathlib import Path

import msgspec
import pytest

from vkpsandbox.errors import SandboxError, log_tail
from vkpsandbox.paths import Layout
from vkpsandbox.processes.child import Child
from vkpsandbox.processes.process import MARK, ProcessSpec, Restart, environment, write_atomically
from vkpsandbox.processes.record import Record, claimed


def test_backoff_grows_up_to_its_cap_and_starts_over_after_a_steady_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    child = Child(ProcessSpec(name="a", argv=["/bin/true"]), tmp_path, tmp_path / "log")

    def run(for_s: float) -> float:
        nonlocal now
        child.start()
        now += for_s
        while not child.reap():
            time.sleep(0.01)
        return child.restart_in_s()

    waits_s = [run(0.1) for _ in range(7)]
    assert 0.2 <= waits_s[0] <= 0.25
    assert 0.4 <= waits_s[1] <= 0.5
    assert 4.0 <= waits_s[-1] <= 5.0
    assert 0.2 <= run(30.0) <= 0.25


def test_a_program_that_does_not_start_waits_longer_every_time(tmp_path: Path) -> None:
    child = Child(ProcessSpec(name="a", argv=["/nowhere"]), tmp_path, tmp_path / "log")
    for failures in (1, 2, 3):
        with pytest.raises(FileNotFoundError):
            child.start()
        assert child.failures == failures


def test_environment_sets_unsets_and_marks() -> None:
    made = environment({"A": "1", "B": "2"}, {"A": None, "C": "3", MARK: "another"}, Path("/sandbox"))
    assert made == {"B": "2", "C": "3", MARK: "/sandbox"}


def test_specs_survive_the_plan_file() -> None:
    spec = ProcessSpec(name="a", argv=["b"], env={"X": None}, restart=Restart.UNLESS_KILLED, grace_s=1)
    assert msgspec.json.decode(msgspec.json.encode([spec]), type=list[ProcessSpec]) == [spec]


def test_files_are_private_and_replaced_whole(tmp_path: Path) -> None:
    target = tmp_path / "file"
    write_atomically(target, b"a longer content")
    write_atomically(target, b"new")
    assert target.read_bytes() == b"new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [target]


def test_log_tail_shows_the_last_lines(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    assert "no log" in log_tail(log)
    log.touch()
    assert "is empty" in log_tail(log)
    log.write_text("".join(f"line {n}\n" for n in range(100)))
    assert log_tail(log, 2).splitlines()[1:] == ["  | line 98", "  | line 99"]


def test_directory_with_other_things_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(SandboxError, match=r"not empty and no sandbox \(thesis.tex\)"), claimed(Layout(tmp_path)):
        pass


def test_directory_of_an_ended_sandbox_is_cleared(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "new")
    record = Record(name="n", kubectl="/k", context="c", foreign=False, audit=True)
    with claimed(layout):
        record.save(layout)
        layout.log("etcd").touch()
    assert Record.load(layout) == record
    with claimed(layout):
        assert {path.name for path in layout.directory.rglob("*")} == {"logs", "workers"}


def test_directory_is_given_to_one_at_a_time(tmp_path: Path) -> None:
    with (
        claimed(Layout(tmp_path)),
        pytest.raises(SandboxError, match="is being started"),
        claimed(Layout(tmp_path)),
    ):
        pass


def test_directory_of_a_running_sandbox_is_refused(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    with layout.lock.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(SandboxError, match="runs already"), claimed(layout):
            pass


def test_missing_and_damaged_records_are_told_apart(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    with pytest.raises(SandboxError, match="there is no sandbox in"):
        Record.load(layout)
    layout.record.write_text("{")
    with pytest.raises(SandboxError, match="is damaged"):
        Record.load(layout)
