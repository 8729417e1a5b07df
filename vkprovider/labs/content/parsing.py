"""Parses untrusted content in a process with limits: packages, and the topologies in them.

One process for all replicas of this one; it starts with the first document, ends when it is idle, and is ended by its
limits. A document that was refused is not parsed again.
"""

import asyncio
import atexit
import contextlib
import hashlib
import os
import signal
import subprocess
import sys
import threading
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Final

import msgspec
import structlog

from vkprovider.labs.content.parser import (
    CPU_S_MAX,
    HEADER,
    READY,
    ParserAnswer,
    ReadPackage,
    ReadTopology,
    Request,
    out_of_memory,
    refusal,
)
from vkprovider.labs.pure.definition.package import Package
from vkprovider.labs.pure.topology.topology import Topology
from vkprovider.labs.settings.services import PackageSettings
from vkprovider.platform.errors import DeadlineExceeded, InputError, Unavailable
from vkprovider.platform.reasons import reason_of

_log: Final = structlog.get_logger(__name__)
_COMMAND: Final = (sys.executable, "-m", "vkprovider.labs.content.parser")
_PASSED_ON: Final = ("LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "PYTHONHOME", "PYTHONPATH")
"""Environment of the process: no secret among it."""
_WALL_S: Final = 4.0 * CPU_S_MAX
"""Time for one document on a busy machine."""
_REFUSED_MAX: Final = 1000
_CRASHES: Final = frozenset({signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL, signal.SIGFPE})

_encoder: Final = msgspec.msgpack.Encoder()
_answers: Final = msgspec.msgpack.Decoder(ParserAnswer)


class _EndedError(Exception):
    """The process ended without an answer."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class ContentParser:
    """Parses one document at a time; callable from any event loop."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="parser")
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False
        self._refused: OrderedDict[bytes, tuple[str, str]] = OrderedDict()

    async def package(self, data: bytes, limits: PackageSettings, version: str) -> Package:
        """Unpack a package; see `packages.read`.

        Raises:
            InputError: `PackageTooLarge` or `PackageInvalid`.
            OutsideError: The process could not be started, or the machine was too busy.
        """
        answer = await self._ask(ReadPackage(data, limits.model_dump(), version))
        assert answer.package is not None  # noqa: S101 (the answer to this request)
        return answer.package

    async def topology(self, package: Package) -> Topology:
        """Parse the topology of a package; see `packages.validate`.

        Raises:
            InputError: `TopologyInvalid` or `PackageInvalid`.
            OutsideError: The process could not be started, or the machine was too busy.
        """
        answer = await self._ask(ReadTopology(package))
        assert answer.topology is not None  # noqa: S101 (the answer to this request)
        return answer.topology

    def close(self) -> None:
        """End the process, whatever it is doing."""
        self._closed = True
        if (process := self._process) is not None:
            process.kill()
        with contextlib.suppress(RuntimeError):  # closed before
            self._thread.submit(self._end)
        self._thread.shutdown()

    async def _ask(self, request: Request) -> ParserAnswer:
        answer = await asyncio.get_running_loop().run_in_executor(self._thread, self._answer, request)
        if answer.refused is not None:
            reason, message = answer.refused
            raise InputError(reason_of(reason), message)
        return answer

    # --------------------------------------------------------------------------------- in the thread

    def _answer(self, request: Request) -> ParserAnswer:
        body = _encoder.encode(request)
        key = hashlib.sha256(body).digest()
        if (known := self._refused.get(key)) is not None:
            return ParserAnswer(refused=known)
        try:
            answer = self._exchange(body)
        except _EndedError as end:
            answer = ParserAnswer(refused=refusal(request, _why(end.code)))
        if answer.refused is not None:
            self._refused[key] = answer.refused
            if len(self._refused) > _REFUSED_MAX:
                self._refused.popitem(last=False)
            _log.info("content was refused", reason=answer.refused[0], message=answer.refused[1])
        return answer

    def _exchange(self, body: bytes) -> ParserAnswer:
        """Pass one request to the process; once more if it had just ended because it was idle.

        Raises:
            _EndedError: It ended because of the request.
            Unavailable: It does not start, or was killed from outside.
            DeadlineExceeded: No answer came in time.
        """
        for fresh in (False, True):
            process = self._running(fresh=fresh)
            overdue = threading.Event()
            timer = threading.Timer(_WALL_S, _kill, (process, overdue))
            timer.start()
            try:
                if (answer := _call(process, body)) is not None:
                    return _answers.decode(answer)
            finally:
                timer.cancel()
            code = self._end()
            if overdue.is_set():
                raise DeadlineExceeded(f"the content could not be parsed within {_WALL_S:g} s")
            if -code in _CRASHES or -code == signal.SIGXCPU or code > 0:
                raise _EndedError(code)
            if code < 0:
                raise Unavailable(f"the process that parses content was ended by signal {-code}")
        raise Unavailable("the process that parses content ended before it answered")

    def _running(self, *, fresh: bool) -> subprocess.Popen[bytes]:
        process = self._process
        if process is not None and not fresh and process.poll() is None:
            return process
        self._end()
        if self._closed:
            raise Unavailable("the provider is stopping")
        environment = {name: value for name in _PASSED_ON if (value := os.environ.get(name)) is not None}
        process = self._process = subprocess.Popen(  # noqa: S603 (our own module)
            _COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
        assert process.stdout is not None  # noqa: S101 (a pipe)
        if process.stdout.readline() != READY:
            raise Unavailable(f"the process that parses content did not start: exit code {self._end()}")
        return process

    def _end(self) -> int:
        """End the process; return its exit code, or 0 if it had none."""
        process, self._process = self._process, None
        if process is None:
            return 0
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):  # what it did not read any more
                    pipe.close()
        try:
            return process.wait(timeout=1.0)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()


def _call(process: subprocess.Popen[bytes], body: bytes) -> bytes | None:
    """Write a request and read its answer; None if the process ended."""
    assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018 (pipes)
    try:
        process.stdin.write(HEADER.pack(len(body)) + body)
        process.stdin.flush()
        header = process.stdout.read(HEADER.size)
        if len(header) < HEADER.size:
            return None
        size = HEADER.unpack(header)[0]
        answer = process.stdout.read(size)
    except (BrokenPipeError, ConnectionResetError):
        return None
    return answer if len(answer) == size else None


def _kill(process: subprocess.Popen[bytes], overdue: threading.Event) -> None:
    overdue.set()
    process.kill()


def _why(code: int) -> str:
    if -code == signal.SIGXCPU:
        return f"it needs more than {CPU_S_MAX} s of CPU time; make it smaller"
    if -code in _CRASHES:
        return f"it ends the parser by signal {-code}"
    return out_of_memory()


@cache
def shared_parser() -> ContentParser:
    """Return the parser of this process; its own process starts with the first document."""
    parser = ContentParser()
    atexit.register(parser.close)
    return parser
