"""Verdicts on what was collected from a lab, by rule."""

import random
import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

import msgspec

from vkpsim.http.patterns import check_pattern

Rule = Literal["pass", "fail", "seeded", "checks"]
"""`pass` and `fail` always say so, `seeded` draws a score by the seed and the lablet, `checks` looks."""

FULL_SCORE: Final = 100.0


class Check(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A check that earns points: a text in a device's configuration, or in the response to an item.

    Example:
        `{"device": "R1", "matches": "ip ospf 1 area 0", "points": 40}`
    """

    matches: str
    """A regular expression, searched line by line."""
    device: str | None = None
    item: str | None = None
    points: Annotated[float, msgspec.Meta(gt=0)] = 1.0

    def __post_init__(self) -> None:
        check_pattern("matches", self.matches)


class Response(msgspec.Struct, kw_only=True):
    """A learner's response to an item."""

    item: str
    answer: Any = None


class Lablet(msgspec.Struct, kw_only=True):
    """The graded lablet."""

    uid: str
    name: str
    namespace: str


class GradeRequest(msgspec.Struct, kw_only=True):
    """The request to a grader; unknown fields are ignored."""

    grading_id: Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
    lablet: Lablet
    configurations: dict[str, str]
    responses: list[Response] = []


class Verdict(msgspec.Struct, kw_only=True):
    """The verdict of a grader."""

    grading_id: str
    passed: bool
    score: float
    max_score: float
    message: str


class Grader:
    """Grades by one rule; the same request gets the same verdict.

    Args:
        rule: The rule.
        checks: For the rule `checks`.
        pass_score: The share of the full score that passes.
        takes_s: How long grading takes; earlier requests are told to retry.
        seed: For the rule `seeded`.
    """

    def __init__(
        self,
        rule: Rule = "pass",
        checks: tuple[Check, ...] = (),
        *,
        pass_score: float = 0.7,
        takes_s: float = 0.0,
        seed: int = 0,
    ) -> None:
        if rule == "checks" and not checks:
            raise ValueError("the rule checks needs checks")
        self._rule = rule
        self._checks = [(check, re.compile(check.matches, re.MULTILINE)) for check in checks]
        self._pass_score = pass_score
        self._takes_s = takes_s
        self._seed = seed
        self._begun: dict[str, float] = {}

    def left_s(self, now: float, request: GradeRequest) -> float:
        """Return the remaining time of this grading; it begins with the first request."""
        return self._begun.setdefault(request.grading_id, now) + self._takes_s - now

    def grade(self, request: GradeRequest) -> Verdict:
        """Return the verdict on what was collected."""
        score, full, message = self._score(request)
        return Verdict(
            grading_id=request.grading_id,
            passed=score >= full * self._pass_score,
            score=score,
            max_score=full,
            message=message,
        )

    def _score(self, request: GradeRequest) -> tuple[float, float, str]:
        """Return the score, the full score, and why."""
        by_rule = f"by the rule {self._rule}"
        match self._rule:
            case "pass":
                return FULL_SCORE, FULL_SCORE, by_rule
            case "fail":
                return 0.0, FULL_SCORE, by_rule
            case "seeded":
                drawn = random.Random(f"{self._seed}/{request.lablet.uid}").randint(0, int(FULL_SCORE))
                return float(drawn), FULL_SCORE, by_rule
            case "checks":
                answers = {response.item: response.answer for response in request.responses}
                lost = [c for c, pattern in self._checks if not _met(c, pattern, request.configurations, answers)]
                full = sum(check.points for check, _ in self._checks)
                missed = [f"{check.device or check.item or 'lab'}: no {check.matches}" for check in lost]
                return full - sum(check.points for check in lost), full, "; ".join(missed) or "all checks are met"


def _met(check: Check, pattern: re.Pattern[str], configurations: Mapping[str, str], answers: Mapping[str, Any]) -> bool:
    texts = [configurations.get(check.device, "")] if check.device is not None else []
    if check.item is not None:
        texts.append(str(answers.get(check.item, "")))
    if check.device is None and check.item is None:
        texts = list(configurations.values())
    return any(pattern.search(text) for text in texts)
