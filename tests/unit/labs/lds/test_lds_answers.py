"""The error of each answer of an LDS."""

import msgspec
import pytest

from tunnels import base as transport
from tunnels.base import Response
from vkprovider.labs.lds.dialect import Full, Lacking, LdsDialect
from vkprovider.platform import errors
from vkprovider.platform.errors import OutsideError
from vkprovider.rest import dialect as dialects
from vkprovider.rest.dialect import Unsent, may_have_happened
from vkprovider.rest.exchange import code_of
from vkprovider.rest.operations import Operation

LDS = LdsDialect("LDS a")
CALL = Operation("call", "GET", "/sessions/s-1").to()


def response(status: int, code: str = "", message: str = "", **headers: str) -> Response:
    body = msgspec.json.encode({"code": code, "message": message}) if code else b"<html>"
    return Response(status, body, {name.replace("_", "-"): value for name, value in headers.items()})


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (response(400, "Invalid"), errors.Invalid),
        (response(401, "NoToken"), errors.Unauthorized),
        (response(403), errors.Forbidden),
        (response(404, "UnknownSession"), errors.NotFound),
        (response(404, "UnknownForm"), errors.NotFound),
        (response(404, "NoSuchPage"), errors.Unavailable),
        (response(404), errors.Unavailable),
        (response(409, "ClientKeyConflict"), errors.Conflict),
        (response(413), errors.Invalid),
        (response(422, "Invalid"), errors.Invalid),
        (response(429), errors.Throttled),
        (response(500), errors.Unavailable),
        (response(503, "CapacityExhausted"), Full),
        (response(503, "Down"), errors.Unavailable),
        (response(302), errors.Invalid),
        (response(200, content_type="text/html; charset=utf-8"), errors.Unavailable),
    ],
)
def test_kind(answer: Response, kind: type[OutsideError]) -> None:
    error = dialects.error_of(LDS, CALL, answer)
    assert type(error) is kind
    assert error.message.startswith("LDS a: call")


@pytest.mark.parametrize("status", [200, 201, 204])
def test_success(status: int) -> None:
    assert dialects.error_of(LDS, CALL, Response(status, b"", {"content-type": "application/json"})) is None


@pytest.mark.parametrize(("said", "after_s"), [("7", 7.0), ("999999", 300.0), ("soon", 1.0), ("0", 0.1), ("nan", 0.1)])
def test_retry_after(said: str, after_s: float) -> None:
    error = dialects.error_of(LDS, CALL, response(429, retry_after=said))
    assert isinstance(error, errors.Throttled)
    assert error.after_s == after_s


def test_secrets_are_not_quoted() -> None:
    said = response(422, "Invalid", "password 'cisco123' of user cisco is too short: cisco")
    error = dialects.error_of(LDS, CALL, said, ["cisco", "cisco123", ""])
    assert error is not None
    assert "cisco" not in error.message


def test_long_and_odd_bodies_are_harmless() -> None:
    for body in (b"", b"\xff\xfe", b"[]", b'{"code": 1}', b'"text"', b"{" * 100_000):
        assert type(dialects.error_of(LDS, CALL, Response(500, body))) is errors.Unavailable
    error = dialects.error_of(LDS, CALL, response(500, "Down", "long " * 10_000))
    assert error is not None
    assert len(error.message) <= 256


TRANSPORT = [
    (transport.DeadlineExceeded("x"), errors.DeadlineExceeded, "timeout", True),
    (transport.ConnectionLost("x"), errors.Unavailable, "lost", True),
    (transport.ConnectFailed("x"), Unsent, "unreachable", False),
    (transport.CertificateInvalid("x", fault="expired"), errors.TlsFailed, "certificate", False),
    (transport.RequestRefused("x"), errors.Invalid, "not_allowed", False),
]


@pytest.mark.parametrize(("cause", "kind", "code", "maybe"), TRANSPORT)
def test_no_answer(cause: transport.TransportError, kind: type[OutsideError], code: str, *, maybe: bool) -> None:
    error = dialects.transport_error(LDS, CALL, cause)
    assert type(error) is kind
    assert code_of(cause) == code
    assert may_have_happened(error) is maybe


@pytest.mark.parametrize(
    ("error", "maybe"),
    [
        (errors.Unavailable("x", status=500), True),
        (errors.Unavailable("half an answer", status=201), True),
        (Full("x", status=503), False),
        (errors.Throttled("x"), False),
        (errors.Conflict("x", status=409), False),
        (errors.Unauthorized("x", status=401), False),
        (Lacking("x"), False),
    ],
)
def test_what_may_have_happened(error: OutsideError, *, maybe: bool) -> None:
    assert may_have_happened(error) is maybe
