"""The grader: one URL that judges what was collected from a lablet (row A24 of `openapi.yaml`)."""

from typing import Any, Final, Protocol

import msgspec
from yarl import URL

from tunnels.direct import DirectTransport
from vkprovider.lablet.archives import Verdict
from vkprovider.labs.lds.dialect import LdsDialect
from vkprovider.labs.settings.services import GraderSettings
from vkprovider.platform.errors import Invalid, Throttled
from vkprovider.platform.settings import reveal
from vkprovider.rest.client import ServiceClient
from vkprovider.rest.dialect import decode
from vkprovider.rest.exchange import Exchange
from vkprovider.rest.operations import Operation, allow_list
from vkprovider.rest.tokens import GivenToken

_ACCEPTED: Final = 202
_AGAIN_S: Final = 5.0
_MESSAGE_CHARS_MAX: Final = 1024


class Grading(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a grader judges.

    Attributes:
        grading_id: Names this grading: asking twice gives one verdict.
        lablet: `uid`, `name`, `namespace`, `definition`, `content_version`.
        configurations: Device label → configuration.
        session: `id`, `username`, `form_qualified_name`; None without an LDS.
        failures: Device label → why it has no configuration.
        responses: What the learner answered.
        grading: The content's criteria, if it has any.
    """

    grading_id: str
    lablet: dict[str, str]
    configurations: dict[str, str]
    session: dict[str, str] | None = None
    failures: dict[str, str] = {}
    responses: list[Any] = []
    grading: str | None = None


class Grader(Protocol):
    """A source of verdicts."""

    async def grade(self, grading: Grading) -> Verdict:
        """Return the verdict on what was collected.

        Raises:
            Throttled: It takes longer; ask again.
            OutsideError: The grader refuses, fails or does not answer.
        """


class _Answer(msgspec.Struct, frozen=True):
    grading_id: str
    passed: bool
    score: float
    max_score: float
    message: str = ""


class HttpGrader:
    """A grader behind a URL.

    Args:
        settings: The settings; the URL's path is the grader's own.
        user_agent: The name of this client in the grader's log.
    """

    def __init__(self, settings: GraderSettings, *, user_agent: str = "") -> None:
        parts, token = URL(settings.url), reveal(settings.token)
        self._operation = Operation("grade", "POST", parts.raw_path or "/", settings.timeout_s)
        self._dialect = LdsDialect(
            "grader",
            kind="a grader",
            setting="VKPROVIDER_GRADER_URL",
            token_setting="VKPROVIDER_GRADER_TOKEN",  # noqa: S106 (the setting's name)
            ca_setting="renew it",
        )

        async def read() -> str | None:
            return token or None

        transport = DirectTransport(str(parts.origin()), allow=allow_list([self._operation], ""), user_agent=user_agent)
        self._service = ServiceClient(Exchange(transport, self._dialect), GivenToken("grader", read))

    async def grade(self, grading: Grading) -> Verdict:
        """See `Grader.grade`."""
        request = self._operation.to(json=grading)
        response = await self._service.send(request)
        if response.status == _ACCEPTED:
            raise Throttled("the grader needs more time", status=_ACCEPTED, after_s=response.retry_after_s(_AGAIN_S))
        answer = decode(self._dialect, request, response, _Answer)
        if answer.grading_id != grading.grading_id:
            raise Invalid(f"grader: a verdict on {answer.grading_id}, not on {grading.grading_id}")
        score = f"score {answer.score:g} of {answer.max_score:g}"
        text = f"{score}: {answer.message}" if answer.message else score
        return Verdict(answer.passed, text[:_MESSAGE_CHARS_MAX])

    async def close(self) -> None:
        """Close all connections."""
        await self._service.close()
