"""Logs as whoever reads them sees them: one JSON object per line, whoever wrote it."""

import json
import subprocess
import sys
from pathlib import Path

import vkprovider

HOME = str(Path(vkprovider.__file__).parents[1])
PROGRAM = """
import logging
import structlog
from vkprovider.platform.logs import set_up

set_up({level!r}, {format_!r})
log = structlog.get_logger("ours")
log.debug("too little")
log.info("lab imported", pod="uid-1", worker="w")
logging.getLogger("library").info("too little")
logging.getLogger("tunnels").info("connected to %s", "replica-1")
logging.getLogger("library").warning("slow %s", "answer")


def fail(password):
    raise ValueError("no")


for failed in (log.exception, logging.getLogger("library").exception):
    try:
        fail("s3cret")
    except ValueError:
        failed("it failed")
"""


def said(level: str, format_: str) -> str:
    program = PROGRAM.format(level=level, format_=format_)
    result = subprocess.run(  # noqa: S603 (ours)
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True, cwd=HOME
    )
    assert result.stdout == ""
    return result.stderr


def test_every_line_is_one_json_object() -> None:
    lines = [json.loads(line) for line in said("info", "json").splitlines()]
    assert [(line["level"], line["event"]) for line in lines] == [
        ("info", "lab imported"),
        ("info", "connected to replica-1"),
        ("warning", "slow answer"),
        ("error", "it failed"),
        ("error", "it failed"),
    ]
    assert lines[0]["pod"] == "uid-1"
    assert [line["logger"] for line in lines] == ["ours", "tunnels", "library", "ours", "library"]
    for line in lines:
        assert line["timestamp"].endswith("Z")
    for line in lines[3:]:
        [trace] = line["exception"]
        assert (trace["exc_type"], trace["exc_value"]) == ("ValueError", "no")


def test_no_local_variable_is_shown() -> None:
    for format_ in ("json", "console"):
        text = said("info", format_)
        assert "it failed" in text
        assert "s3cret" not in text.replace('fail("s3cret")', "")


def test_less_is_said_on_request() -> None:
    assert "lab imported" not in said("error", "json")
    assert "too little" in said("debug", "json")


def test_a_tls_connection_that_has_ended_is_no_error_and_all_else_of_asyncio_is() -> None:
    """What uvloop says of one that was closed here while the other side still sent."""
    closed = "unable to perform operation on <TCPTransport closed=True>; the handler is closed"
    texts = {"Fatal error on SSL protocol\nprotocol: p": [closed, "else"], "Fatal error on transport": [closed]}
    program = f"""
import logging
from vkprovider.platform.logs import set_up

set_up("info", "json")
set_up("info", "json")
for text, errors in {texts!r}.items():
    for error in errors:
        logging.getLogger("asyncio").error(text, exc_info=RuntimeError(error))
"""
    result = subprocess.run(  # noqa: S603 (ours)
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True, cwd=HOME
    )
    found = [json.loads(line) for line in result.stderr.splitlines()]
    assert [(line["event"].split("\n")[0], line["exception"][0]["exc_value"]) for line in found] == [
        ("Fatal error on SSL protocol", "else"),
        ("Fatal error on transport", closed),
    ]
