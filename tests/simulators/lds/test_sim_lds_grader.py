"""The simulator's grader: its verdicts, by rule, in the form of the protocol."""

import pytest

from tests.support.lds_simulator import lds_client
from vkpsim.lds.grading import Check, Grader
from vkpsim.lds.server import LdsSimulator
from vkpsim.lds.settings import LdsSettings

REQUEST = {
    "grading_id": "grading-1",
    "lablet": {"uid": "uid-1", "name": "exam-1", "namespace": "exams", "definition": "ospf"},
    "session": {"id": "s-1", "username": "alice", "form_qualified_name": "exams/ospf"},
    "collected_at": "2026-01-17T10:30:00Z",
    "configurations": {"R1": "hostname R1\nrouter ospf 1\n", "R2": "hostname R2\n"},
    "failures": {"SW1": "the node is not booted"},
    "responses": [{"item": "task-1", "answer": "10"}],
}
CHECKS = (
    Check(device="R1", matches="^router ospf 1$", points=60),
    Check(device="R2", matches="^router ospf 1$", points=30),
    Check(item="task-1", matches="^10$", points=10),
)


@pytest.mark.parametrize(
    ("grader", "passed", "score", "message"),
    [
        (Grader("pass"), True, 100, "by the rule pass"),
        (Grader("fail"), False, 0, "by the rule fail"),
        (Grader("checks", CHECKS), True, 70, "R2: no ^router ospf 1$"),
        (Grader("checks", CHECKS, pass_score=0.8), False, 70, "R2: no ^router ospf 1$"),
        (Grader("checks", (Check(matches="hostname R2"),)), True, 1, "all checks are met"),
        (Grader("checks", (Check(item="task-2", matches="."),)), False, 0, "task-2: no ."),
    ],
)
async def test_verdicts_by_rule(grader: Grader, score: float, message: str, *, passed: bool) -> None:
    async with LdsSimulator(LdsSettings(), grader=grader) as simulator, lds_client(simulator.url) as lds:
        for _ in range(2):
            verdict = (await lds.grade(REQUEST)).body
            assert (verdict["passed"], verdict["score"], verdict["message"]) == (passed, score, message)
            assert verdict["grading_id"] == "grading-1"


async def test_seeded_verdicts_are_the_same_in_every_run() -> None:
    async def scores(seed: int) -> list[float]:
        grader = Grader("seeded", seed=seed)
        async with LdsSimulator(LdsSettings(), grader=grader) as simulator, lds_client(simulator.url) as lds:
            lablets = [{"uid": f"uid-{number}", "name": "exam", "namespace": "exams"} for number in range(10)]
            return [(await lds.grade({**REQUEST, "lablet": lablet})).body["score"] for lablet in lablets]

    assert await scores(1) == await scores(1) != await scores(2)


async def test_a_slow_grader_asks_to_come_again_and_a_wrong_request_is_refused() -> None:
    grader = Grader("pass", takes_s=0.3)
    async with LdsSimulator(LdsSettings(), grader=grader) as simulator, lds_client(simulator.url) as lds:
        later = await lds.grade(REQUEST)
        assert (later.status, later.body, later.headers["Retry-After"]) == (202, None, "1")
        while (answer := await lds.grade(REQUEST)).status == 202:
            pass
        assert answer.body["passed"]
        _, _, refused = await lds._send("POST", "/grade", {"grading_id": ""}, {})
        assert refused.code == (422, "InvalidRequest")


async def test_a_grader_suffers_faults_and_wants_the_token() -> None:
    async with LdsSimulator(LdsSettings(token="secret")) as simulator, lds_client(simulator.url, "secret") as lds:
        await lds.sim("POST", "/faults", {"kind": "status", "route": "/grade$", "status": 503, "count": 1})
        assert [(await lds.grade(REQUEST)).status for _ in range(2)] == [503, 200]
        lds.token = ""
        _, _, refused = await lds._send("POST", "/grade", REQUEST, {})
        assert refused.code == (401, "Unauthorized")
