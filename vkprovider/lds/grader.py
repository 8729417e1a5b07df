"""The grader: one URL that takes what was collected from a lablet and answers a verdict (row A24 of `openapi.yaml`)."""

from typing import Any, Final, Protocol

import msgspec
from yarl import URL

from tunnels.allowlist import AllowList
from tunnels.direct import DirectTransport
from tunnels.errors import TransportError
from vkprovider.api.errors import Invalid, Throttled, Unavailable
from vkprovider.domain.session.delivery import Verdict
from vkprovider.lds import answers

_ACCEPTED: Final = 202
_AGAIN_S: Final = 5.0
_MESSAGE_CHARS_MAX: Final = 1024


class Grading(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a grader is given.

    Attributes:
        grading_id: Names this grading: asking twice gives one verdict.
        lablet: `uid`, `name`, `namespace`, `definition`, `content_version`.
        configurations: Device label → configuration.
        session: `id`, `username`, `form_qualified_name`; None without an LDS.
        failures: Device label → why it has no configuration.
        responses: What the learner answered.
        grading: The content's criteria, where it has some.
    """

    grading_id: str
    lablet: dict[str, str]
    configurations: dict[str, str]
    session: dict[str, str] | None = None
    failures: dict[str, str] = {}
    responses: list[Any] = []
    grading: str | None = None


class Grader(Protocol):
    """Gives verdicts."""

    async def grade(self, grading: Grading) -> Verdict:
        """Give the verdict on what was collected.

        Raises:
            Throttled: It takes longer; ask again.
            OutsideError: The grader refuses, fails or does not answer.
        """
        ...


class _Answer(msgspec.Struct, frozen=True):
    grading_id: str
    passed: bool
    score: float
    max_score: float
    message: str = ""


class HttpGrader:
    """A grader behind a URL."""

    def __init__(self, url: str, *, token: str | None, timeout_s: float, user_agent: str = "") -> None:
        """Take where it is, and the token that it wants, if it wants one."""
        parts = URL(url)
        self._path = parts.raw_path or "/"
        self._token = token
        self._timeout_s = timeout_s
        self._transport = DirectTransport(
            str(parts.origin()), allow=AllowList([("POST", self._path)]), user_agent=user_agent
        )

    async def grade(self, grading: Grading) -> Verdict:
        """See `Grader.grade`."""
        headers = {"Content-Type": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        try:
            response = await self._transport.request(
                "POST",
                self._path,
                body=msgspec.json.encode(grading),
                headers=headers,
                deadline_s=self._timeout_s,
            )
        except TransportError as cause:
            raise answers.transport_error("grader", cause) from cause
        if response.status == _ACCEPTED:
            raise Throttled("the grader needs more time", status=_ACCEPTED, after_s=response.retry_after_s(_AGAIN_S))
        error = answers.error_of("grader", response, (self._token or "",))
        if error is not None:
            raise error
        try:
            answer = msgspec.json.decode(response.body, type=_Answer)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Unavailable(f"grader: an answer that is no verdict: {error}", status=response.status) from error
        if answer.grading_id != grading.grading_id:
            raise Invalid(f"grader: a verdict on {answer.grading_id}, not on {grading.grading_id}")
        score = f"score {answer.score:g} of {answer.max_score:g}"
        text = f"{score}: {answer.message}" if answer.message else score
        return Verdict(answer.passed, text[:_MESSAGE_CHARS_MAX])

    async def close(self) -> None:
        """Close all connections."""
        await self._transport.close()
