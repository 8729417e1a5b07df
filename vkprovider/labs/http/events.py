"""The CloudEvents receiver: `POST /events`.

A sender authenticates by a secret: as bearer token, or as the key of an HMAC of the body. The latter does not cover
headers, so it is accepted only where the whole event is in the body. A sender is asked to retry (503, Retry-After)
while its event cannot be stored, or is about a session that is not known yet; see `inbox.EventOutcome`. Nothing is
answered with 410, by which the specification of webhooks tells a sender never to come back.
"""

import asyncio
import hashlib
import hmac
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from typing import Final

import structlog
from aiohttp import web
from msgspec.structs import replace

from vkprovider.labs.http import cloudevents
from vkprovider.labs.http.cloudevents import CloudEvent, Mode
from vkprovider.labs.http.refusals import (
    EventIncomplete,
    EventInvalid,
    EventsDisabled,
    EventTooLarge,
    MediaTypeUnsupported,
    SecretMissing,
    SecretWrong,
    SignatureInsufficient,
    SignatureWrong,
    TryAgain,
)
from vkprovider.labs.pure.session.inbox import EventOutcome, SessionEvent
from vkprovider.platform.http.answers import Refused, bearer
from vkprovider.platform.http.bodies import Body, BodyLate, BodyTooLarge, read

_log: Final = structlog.get_logger(__name__)

BODY_BYTES_MAX: Final = 1 << 20
SIGNATURE: Final = "X-Hub-Signature-256"
"""`sha256=` and the HMAC of the body in hexadecimal digits, as WebSub and many a sender of webhooks write it."""
_BODY: Final = Body(BODY_BYTES_MAX, within_s=10.0)
UNSURE_MAX: Final = 8
"""Bodies that are read at once before their sender is known: a signature is checked with the whole body."""
_LOG_EVERY_S: Final = 10.0
"""How often a refusal is logged, by reason: a sender without the secret must not fill the log."""

Accept = Callable[[SessionEvent], Awaitable[EventOutcome]]


class Receiver:
    """Receives events and passes them to `accept`.

    Attributes:
        counts: Events by outcome.
    """

    def __init__(
        self,
        accept: Accept,
        secrets: Collection[tuple[str, str]],
        *,
        counts: Counter[str] | None = None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Create the receiver.

        Args:
            accept: Stores one event; must not raise for what the sender cannot change.
            secrets: Each authenticates a sender; without one, all events are refused. Before each stands the LDS
                deployment whose sessions its sender may speak of, empty for any.
            counts: The counters to increase.
            wall: The wall clock.
        """
        self._accept = accept
        self._secrets = [(deployment, secret.encode()) for deployment, secret in secrets]
        self._wall = wall
        self._unsure = asyncio.Semaphore(UNSURE_MAX)
        self._logged_at: dict[str, float] = {}
        self.counts: Counter[str] = counts if counts is not None else Counter()

    async def handle(self, request: web.Request) -> web.Response:
        """Answer `POST /events`."""
        try:
            return await self._take(request)
        except Refused as refusal:
            self.counts[refusal.word] += 1
            self._log_refusal(refusal, request.remote)
            raise

    def _log_refusal(self, refusal: Refused, sender: str | None) -> None:
        now = self._wall()
        if now - self._logged_at.get(refusal.word, 0.0) >= _LOG_EVERY_S:
            self._logged_at[refusal.word] = now
            total = self.counts[refusal.word]
            _log.warning("events refused", reason=refusal.word, sender=sender, message=refusal.message, total=total)

    async def _take(self, request: web.Request) -> web.Response:
        try:
            mode = cloudevents.mode_of(request.headers)
        except MediaTypeUnsupported:
            self._admit(request, b"", "binary")
            raise
        if (encoding := request.headers.get("Content-Encoding", "identity")) != "identity":
            self._admit(request, b"", "binary")
            raise MediaTypeUnsupported(f"Content-Encoding {encoding!r}: send the body as it is")
        if self._may_sign(request, mode):
            if self._unsure.locked():
                text = "too many bodies of unknown senders are being read; send it again, or use the bearer token"
                raise TryAgain(text)
            async with self._unsure:
                body = await self._body(request)
                deployment = self._admit(request, body, mode)
        else:
            deployment = self._admit(request, b"", mode)  # before anything is read
            body = await self._body(request)
        found = cloudevents.read(mode, request.headers, body)
        outcomes = [await self._pass_on(event, deployment) for event in found]
        return _answer(mode, outcomes)

    # --------------------------------------------------------------------------------------------- who sends

    def _may_sign(self, request: web.Request, mode: Mode) -> bool:
        """Return whether the body must be read to know the sender."""
        return bool(self._secrets) and mode != "binary" and not bearer(request) and SIGNATURE in request.headers

    def _admit(self, request: web.Request, body: bytes, mode: Mode) -> str:
        """Check the sender, in constant time; return the deployment of its secret.

        Raises:
            Refused: It knows no secret.
        """
        if not self._secrets:
            raise EventsDisabled("no events are taken: VKPROVIDER_EVENTS_SECRET is not set")
        given = bearer(request).encode()
        if given:
            meant = [of for of, secret in self._secrets if hmac.compare_digest(given, secret)]
            if meant:
                return meant[0]
            raise SecretWrong("the bearer token is not the events' secret")
        if SIGNATURE not in request.headers:
            raise SecretMissing(f"send the events' secret as `Authorization: Bearer …`, or sign the body ({SIGNATURE})")
        if mode == "binary":
            raise SignatureInsufficient(
                "a signature of the body does not cover the headers of a binary event; send it structured"
            )
        signature = request.headers[SIGNATURE].strip().lower().encode(errors="surrogateescape")
        expected = [
            (of, b"sha256=" + hmac.new(s, body, hashlib.sha256).hexdigest().encode()) for of, s in self._secrets
        ]
        meant = [of for of, value in expected if hmac.compare_digest(signature, value)]
        if not meant:
            raise SignatureWrong("the signature is not that of the body with the events' secret")
        return meant[0]

    @staticmethod
    async def _body(request: web.Request) -> bytes:
        try:
            return await read(request, _BODY)
        except BodyTooLarge:
            raise EventTooLarge(f"send {BODY_BYTES_MAX} bytes at most") from None
        except BodyLate as refusal:
            raise EventIncomplete(refusal.message) from None

    # --------------------------------------------------------------------------------------------- what is sent

    async def _pass_on(self, event: CloudEvent | EventInvalid, deployment: str) -> EventOutcome | EventInvalid:
        result: EventOutcome | EventInvalid
        try:
            if isinstance(event, EventInvalid):
                raise event
            said = cloudevents.session_event(event, int(self._wall()))
            result = EventOutcome.IGNORED if said is None else await self._accept(replace(said, deployment=deployment))
        except EventInvalid as error:
            result = error
        self.counts[result.word if isinstance(result, EventInvalid) else result.value] += 1
        return result


def _answer(mode: Mode, outcomes: list[EventOutcome | EventInvalid]) -> web.Response:
    """Answer for all events: a retry takes precedence over errors, because stored events may be sent twice."""
    retry = [outcome for outcome in outcomes if isinstance(outcome, EventOutcome) and outcome.retry]
    wrong = [outcome for outcome in outcomes if isinstance(outcome, EventInvalid)]
    said = [o.message if isinstance(o, EventInvalid) else o.value for o in outcomes]
    body: dict[str, object] = {"outcome": said[0]} if mode != "batch" and said else {"outcomes": said}
    if not retry and not wrong:
        return web.json_response(body, status=202)
    refusal = _again(retry[0]) if retry else wrong[0]
    return web.json_response(body | refusal.answer(), status=refusal.status, headers=refusal.directions())


def _again(outcome: EventOutcome) -> TryAgain:
    texts = {
        EventOutcome.UNKNOWN_SESSION: "the session is not known yet",
        EventOutcome.FULL: "there are too many events about unknown sessions",
        EventOutcome.FAILED: "the event could not be noted",
    }
    return TryAgain(f"{texts[outcome]}; send it again")
