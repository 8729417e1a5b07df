"""Why a console does not open, or has ended, as the person at it reads it."""

import json

import pytest

from vkprovider.labs.pure.console.writers import Writer, refusal
from vkprovider.platform.errors import Forbidden, Invalid, NotFound, Throttled, Unauthorized, Unavailable
from vkprovider.portal.web.consoles import frames
from vkprovider.portal.web.consoles.frames import ConsoleEnd, Why


@pytest.mark.parametrize(
    ("error", "why", "said"),
    [
        (Unauthorized("Unauthorized", status=401), Why.SIGNED_OUT, "log in again"),
        (Forbidden('pods "a" is forbidden: no', status=403), Why.WITHDRAWN, 'pods "a" is forbidden: no'),
        (NotFound('pods "a" not found', status=404), Why.REFUSED, "The lab has ended, or is not there yet"),
        (Invalid("container lab is not valid", status=400), Why.REFUSED, "container lab is not valid"),
        (Unavailable("refused", status=503), Why.LOST, "The way to r1 does not come about at the moment: refused"),
        (Throttled("too many", status=429), Why.LOST, "too many"),
    ],
)
def test_a_refusal_of_the_api_server(error: Exception, why: Why, said: str) -> None:
    end = frames.refusal(error, "r1")  # type: ignore[arg-type]  # (the parameters are)
    assert end.why is why
    assert said in end.text


def test_the_end_of_a_session() -> None:
    assert frames.end_of(b'{"metadata":{},"status":"Success"}', "r1").why is Why.ENDED
    assert frames.end_of(b"", "r1") == frames.BROKEN, "the connection broke: no status came"
    assert frames.end_of(b"\xffgarbage", "r1") == frames.BROKEN
    off = frames.end_of(b'{"status":"Failure","reason":"DeviceOff","message":"r1 does not run: it is QUEUED"}', "r1")
    assert off == ConsoleEnd(Why.REFUSED, "r1 does not run: it is QUEUED.")
    lost = frames.end_of(b'{"status":"Failure","reason":"NonZeroExitCode","message":"the console broke off: x"}', "r1")
    assert lost == ConsoleEnd(Why.LOST, "The console broke off: x.")


def test_a_worker_that_moved_is_reached_by_trying_again_not_by_a_command() -> None:
    text = "this worker moved to another replica: run the command again"
    body = json.dumps({"status": "Failure", "reason": "InternalError", "message": text}).encode()
    assert frames.end_of(body, "r1") == ConsoleEnd(Why.LOST, "This worker moved to another replica.")


@pytest.mark.parametrize(
    ("reason", "before"), [("ConsoleInUse", ""), ("InternalError", "Internal error occurred: ")], ids=["1.36", "1.35"]
)
def test_who_finds_a_console_in_use_reads_no_command(reason: str, before: str) -> None:
    said = refusal(Writer(1, attached=True, since=1_800_000_000.0), "r1", "nb-alice")
    body = json.dumps({"status": "Failure", "reason": reason, "message": before + said}).encode()
    end = frames.end_of(body, "r1")
    assert end.why is Why.IN_USE
    assert end.text == (
        "Somebody else types at the console of r1 since 08:00 UTC. You watch; if you take over, the other one watches "
        "until you leave."
    )
