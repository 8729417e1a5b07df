"""The process that owns all others of a sandbox: `python -m vkpsandbox.processes.supervisor DIRECTORY`.

It starts the processes of `supervisor.json` and those added later, restarts those that end by themselves, writes
`processes.json`, and serves `control.sock`: one JSON line per request, one per answer.

    {"op": "ps"}                                        -> {"processes": [status, ...]}
    {"op": "add", "spec": {...}}                        -> {"process": status}
    {"op": "stop", "name": "etcd", "grace_s": 5}        -> {"process": status}, when it has ended
    {"op": "start", "name": "etcd"}                     -> {"process": status}; "env": variables to set besides its own
    {"op": "kill", "name": "provider-1", "signal": 9}   -> {"process": status}
    {"op": "shutdown"}                                  -> {}; the lock is free when everything has ended

A refusal is `{"error": "..."}`.

It has a single thread: its children get SIGKILL when the thread that started them ends.
"""

import asyncio
import contextlib
import fcntl
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any, Final

import msgspec

from vkpsandbox.paths import Layout
from vkpsandbox.processes.child import Child
from vkpsandbox.processes.control import socket_path
from vkpsandbox.processes.process import DEADLY, OWNER_VARIABLE, ProcessSpec, write_atomically

LOCK_S: Final = 1.0

KILL_S: Final = 10.0
"""How long a killed process may take to vanish."""


class RefusedError(Exception):
    """A refused request; the message is the answer."""


class Supervisor:
    """Owner of a sandbox's processes."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._children: dict[str, Child] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._changed = asyncio.Condition()
        self._background: set[asyncio.Task[None]] = set()
        self._end = asyncio.Event()

    async def run(self) -> None:
        """Supervise until asked to shut down, by request, signal, or the end of the owner."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGCHLD, self._reap)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, self._end.set)
        self._watch_owner(loop)
        for spec in msgspec.json.decode(self._layout.plan.read_bytes(), type=list[ProcessSpec]):
            self._add(spec)
        with socket_path(self._layout) as path:
            server = await asyncio.start_unix_server(self._serve, path)
        async with server:
            await self._end.wait()
            await self._shut_down()
            server.close()
        with contextlib.suppress(FileNotFoundError):
            self._layout.socket.unlink()

    def _watch_owner(self, loop: asyncio.AbstractEventLoop) -> None:
        """Shut down when the owner's process ends, if there is one."""
        owner = os.environ.get(OWNER_VARIABLE)
        if not owner or not hasattr(os, "pidfd_open"):
            return
        try:
            descriptor = os.pidfd_open(int(owner))
        except ProcessLookupError:
            self._end.set()
            return
        loop.add_reader(descriptor, self._end.set)

    def _add(self, spec: ProcessSpec) -> Child:
        """Add a process and start it."""
        if spec.name in self._children:
            raise RefusedError(f"there is already a process {spec.name}")
        child = Child(spec, self._layout.directory, self._layout.log(spec.name))
        self._children[spec.name] = child
        self._start(child)
        return child

    def _start(self, child: Child) -> None:
        """Start a process now; a failed start is retried like an ended process."""
        timer = self._timers.pop(child.spec.name, None)
        if timer:
            timer.cancel()
        try:
            child.start()
        except OSError as error:
            self._say(f"{child.spec.name} does not start: {error}")
            self._start_later(child)
        self._note()

    def _start_later(self, child: Child) -> None:
        """Start a process again after its back-off."""
        timer = asyncio.get_running_loop().call_later(child.restart_in_s(), self._start_again, child)
        self._timers[child.spec.name] = timer

    def _start_again(self, child: Child) -> None:
        """Start a process that ended by itself."""
        child.restarts += 1
        self._start(child)

    def _reap(self) -> None:
        """Reap the children that ended, and schedule restarts."""
        for child in self._children.values():
            if not child.reap():
                continue
            self._say(f"{child.spec.name} ended with {child.exit_code}")
            if child.wanted and not self._end.is_set():
                self._start_later(child)
        self._note()

    def _note(self) -> None:
        """Write the process table and wake the tasks that wait for a change."""
        table = [child.status() for child in self._children.values()]
        write_atomically(self._layout.processes, msgspec.json.encode(table))
        task = asyncio.ensure_future(self._wake())
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _wake(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def _ended(self, child: Child, timeout_s: float) -> bool:
        """Wait until a process has ended; return False after the timeout."""
        try:
            async with asyncio.timeout(timeout_s), self._changed:
                await self._changed.wait_for(lambda: not child.running)
        except TimeoutError:
            return not child.running
        return True

    async def _stop(self, child: Child, grace_s: float) -> None:
        """End a process, by force if it takes longer than its grace."""
        child.wanted = False
        timer = self._timers.pop(child.spec.name, None)
        if timer:
            timer.cancel()
        if grace_s > 0:
            child.send(signal.SIGTERM)
            if await self._ended(child, grace_s):
                self._note()
                return
        child.send(signal.SIGKILL)
        if not await self._ended(child, KILL_S):
            raise RefusedError(f"{child.spec.name} (pid {child.status().pid}) survived SIGKILL for {KILL_S:.0f} s")
        self._note()

    async def _shut_down(self) -> None:
        """End everything: first the clients of the control plane, then the control plane, whose data is discarded."""
        self._end.set()
        polite = [child for child in self._children.values() if child.spec.grace_s > 0]
        rest = [child for child in self._children.values() if child.spec.grace_s <= 0]
        for group in (polite, rest):
            results = await asyncio.gather(*(self._stop(c, c.spec.grace_s) for c in group), return_exceptions=True)
            for result in results:
                if isinstance(result, BaseException):
                    self._say(str(result))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request."""
        try:
            request = msgspec.json.decode(await reader.readline())
            answer = await self._answer(request)
        except (RefusedError, msgspec.MsgspecError) as error:
            answer = {"error": str(error)}
        writer.write(msgspec.json.encode(answer) + b"\n")
        with contextlib.suppress(ConnectionError):
            await writer.drain()
        writer.close()

    async def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Execute a request.

        Raises:
            RefusedError: If it cannot be executed.
        """
        match request.get("op"):
            case "ps":
                return {"processes": [child.status() for child in self._children.values()]}
            case "add":
                return {"process": self._add(msgspec.convert(request["spec"], ProcessSpec)).status()}
            case "stop":
                child = self._child(request)
                await self._stop(child, float(request.get("grace_s", 5)))
            case "start":
                child = self._child(request)
                if not child.running:
                    child.failures = 0
                    child.env = msgspec.convert(request.get("env") or {}, dict[str, str])
                    self._start(child)
            case "kill":
                child = self._child(request)
                await self._kill(child, signal.Signals(request["signal"]))
            case "shutdown":
                self._end.set()
                return {}
            case other:
                raise RefusedError(f"no such operation: {other}")
        return {"process": child.status()}

    async def _kill(self, child: Child, number: signal.Signals) -> None:
        """Send a signal; after SIGKILL wait for the end."""
        if not child.running:
            raise RefusedError(f"{child.spec.name} does not run ({child.status().state})")
        if child.holds_after(number, DEADLY):
            child.wanted = False
        child.send(number)
        if number is signal.SIGKILL:
            await self._ended(child, KILL_S)

    def _child(self, request: dict[str, Any]) -> Child:
        """Return the process a request names."""
        name = request.get("name")
        child = self._children.get(str(name))
        if child is None:
            raise RefusedError(f"there is no process {name}; there are {', '.join(self._children)}")
        return child

    @staticmethod
    def _say(text: str) -> None:
        """Write a line to the supervisor's log."""
        sys.stderr.write(f"{time.strftime('%H:%M:%S')} {text}\n")
        sys.stderr.flush()


def main(directory: str) -> None:
    """Supervise the sandbox of a directory; at most one supervisor does."""
    layout = Layout(Path(directory))
    with layout.lock.open("w") as lock:
        # A check for a supervisor holds the lock for an instant.
        deadline = time.monotonic() + LOCK_S
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    sys.exit(f"{directory} has a supervisor already")
                time.sleep(0.01)
        asyncio.run(_run(layout))


async def _run(layout: Layout) -> None:
    """Supervise inside an event loop."""
    await Supervisor(layout).run()


if __name__ == "__main__":
    main(sys.argv[1])
