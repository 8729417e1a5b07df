"""The simulated LDS as a process of its own: it survives a kill, its command line does what it says."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.simulators.cml.plain import eventually
from tests.support.lds_simulator import EVENT_TOKEN, FORM, TOKEN, lds_client, sink


@asynccontextmanager
async def process(*options: str) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """Run `vkprovider sim lds`; give the process and its address."""
    command = [sys.executable, "-m", "vkprovider", "sim", "lds", "--listen", "127.0.0.1:0", "--token", TOKEN, *options]
    running = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert running.stdout is not None
    try:
        line = await asyncio.wait_for(running.stdout.readline(), 30)
        assert line.startswith(b"LDS simulator at http"), line
        yield running, line.decode().split(" at ")[1].strip()
    finally:
        if running.returncode is None:
            running.terminate()
        await asyncio.wait_for(running.communicate(), 30)


async def test_sessions_and_events_survive_a_kill(tmp_path: Path) -> None:
    state = tmp_path / "lds.json"

    def stored() -> bool:
        kept = json.loads(state.read_text())
        return len(kept["sessions"]) == 2 and len(kept["undelivered"]) == 1

    async with process("--state", str(state)) as (running, url), lds_client(url) as lds:
        started = (await lds.create(client_key="uid-1")).body["id"]
        waiting = (await lds.create(client_key="uid-2")).body["id"]
        await lds.sim("POST", f"/sessions/{started}/log-in")
        await eventually(stored)
        running.send_signal(signal.SIGKILL)
        await running.wait()
    async with sink() as target:
        options = ("--state", str(state), "--target", target.url, "--event-token", EVENT_TOKEN)
        async with process(*options) as (_, url), lds_client(url) as lds:
            assert [await lds.state(one) for one in (started, waiting)] == ["RUNNING", "PENDING"]
            assert (await lds.create(client_key="uid-2")).body["id"] == waiting
            [event] = await target.take()
            assert (event.event["type"], event.event["subject"]) == ("session.started", started)
            assert event.authorization == f"Bearer {EVENT_TOKEN}"


async def test_the_command_line_sets_capacity_forms_faults_events_and_grading(tmp_path: Path) -> None:
    log, faults, events, checks = (tmp_path / name for name in ("log.jsonl", "faults", "events", "checks"))
    faults.write_text('[{"kind": "status", "route": "/info$", "status": 502, "count": 1}]')
    events.write_text('[{"kind": "duplicate", "count": 1}]')
    checks.write_text('[{"device": "R1", "matches": "ospf"}]')
    options = ["--capacity", "1", "--form", FORM, "--no-owners", "--no-timeslot-end", "--event-mode", "batch"]
    options += ["--sign-events", "--event-token", EVENT_TOKEN, "--grade", "checks", "--grade-checks", str(checks)]
    options += ["--faults", str(faults), "--event-faults", str(events), "--access-log", str(log), "--seed", "3"]
    async with sink() as target, process(*options, "--target", target.url) as (running, url), lds_client(url) as lds:
        assert [(await lds.ask("GET", "/info")).status for _ in range(2)] == [502, 200]
        assert (await lds.create(form_qualified_name="gone")).code == (404, "UnknownForm")
        made = await lds.create(owner="ignored", minutes=0.001)
        assert (made.status, "owner" in made.body) == (201, False)
        assert (await lds.create()).code == (503, "CapacityExhausted")
        verdict = await lds.grade(
            {
                "grading_id": "g",
                "lablet": {"uid": "u", "name": "n", "namespace": "ns"},
                "configurations": {"R1": "router ospf 1"},
            }
        )
        assert verdict.body["passed"]
        await lds.ask("POST", f"/sessions/{made.body['id']}/archive")
        session = (await lds.create()).body["id"]
        await lds.sim("POST", f"/sessions/{session}/log-in")
        first, second = await target.take(2)
        assert first.event == second.event
        assert first.content_type == "application/cloudevents-batch+json"
        assert first.signature.startswith("sha256=")
        running.send_signal(signal.SIGINT)
        assert await asyncio.wait_for(running.wait(), 30) == 0
    entries = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(entry["method"], entry["path"], entry["status"]) for entry in entries[:3]] == [
        ("GET", "/api/v1/info", 502),
        ("GET", "/api/v1/info", 200),
        ("POST", "/api/v1/sessions", 404),
    ]
    assert all(entry["arrived_unix_s"] <= entry["answered_unix_s"] for entry in entries)
    assert session in {entry.get("session") for entry in entries}


async def test_https_with_a_certificate_of_its_own() -> None:
    async with process("--tls", "--base-url", "https://lds.example.com/") as (_, url):
        assert url.startswith("https://127.0.0.1:")
        async with lds_client(url) as lds:
            lds.http.connector._ssl = False  # type: ignore[union-attr]
            made = (await lds.create()).body
            assert made["login_url"].startswith("https://lds.example.com/login?token=")
