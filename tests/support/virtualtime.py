"""An event loop whose time is virtual: it waits for nothing, and the same work takes the same steps every time.

Nothing else counts: no wall clock, no socket, no thread, no hash. Tasks may belong to a process, which can be stopped
between any two steps of theirs, and killed.
"""

import asyncio
import selectors
import types
from collections.abc import Coroutine, Generator
from contextvars import ContextVar
from typing import Any, Final, TypeVar

T = TypeVar("T")


def now_s() -> float:
    """Return the true time."""
    return asyncio.get_running_loop().time()


class Process:
    """One process of the operating system; tasks that it starts are its own.

    Attributes:
        stopped_until: It takes no step before; the true time.
        dead: Whether it was killed.
    """

    def __init__(self) -> None:
        """Let it run."""
        self.stopped_until = 0.0
        self.dead = False
        self._tasks: dict[asyncio.Task[Any], None] = {}  # in the order of their starts

    @property
    def stopped(self) -> bool:
        """Whether it takes no step now."""
        return self.dead or self.stopped_until > now_s()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine in it; every task that this one starts belongs to it, too."""
        before = _CURRENT.set(self)
        try:
            asyncio.get_running_loop().create_task(work)
        finally:
            _CURRENT.reset(before)

    def kill(self) -> None:
        """End as SIGKILL does; what was sent still arrives."""
        self.dead = True
        for task in list(self._tasks):
            task.cancel()

    def adopt(self, task: "asyncio.Task[Any]") -> None:
        """Let a task end with it."""
        self._tasks[task] = None
        task.add_done_callback(lambda ended: self._tasks.pop(ended, None))
        if self.dead:
            task.cancel()

    @types.coroutine
    def hold(self, work: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
        """Run a coroutine, and hold it between two steps while the process is stopped."""
        value: Any = None
        thrown: BaseException | None = None
        loop = asyncio.get_running_loop()
        while True:
            while self.stopped_until > loop.time() and not self.dead:
                try:
                    yield from asyncio.sleep(max(0.01, self.stopped_until - loop.time())).__await__()
                except asyncio.CancelledError as error:
                    thrown = error
            try:
                waits = work.send(value) if thrown is None else work.throw(thrown)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            thrown = None
            try:
                value = yield waits
            except BaseException as error:  # noqa: BLE001 (whatever is thrown belongs to the coroutine)
                thrown = error


_CURRENT: Final[ContextVar[Process | None]] = ContextVar("process", default=None)


_STEP_S: Final = 1e-7
"""What a round of the loop takes: one that waits for a clock gets on, however little is left."""


class _Selector(selectors.DefaultSelector):
    """Lets the time of the loop pass at once where another one would wait."""

    passed_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("nothing will ever happen in this loop again")
        self.passed_s += timeout + _STEP_S
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """The loop; its time begins at 0."""

    def __init__(self) -> None:
        """Begin at 0."""
        self._virtual = _Selector()
        super().__init__(self._virtual)
        self.set_task_factory(_factory)

    def time(self) -> float:
        """Return the virtual time."""
        return self._virtual.passed_s


def _factory(loop: asyncio.AbstractEventLoop, work: Any, **how: Any) -> "asyncio.Task[Any]":
    """Make a task; one of a process is held while the process is stopped."""
    process = _CURRENT.get()
    if process is None:
        return asyncio.Task(work, loop=loop, **how)

    async def held() -> Any:
        return await process.hold(work)

    task = asyncio.Task(held(), loop=loop, **how)
    process.adopt(task)
    return task


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in virtual time."""
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(work)
    finally:
        loop.close()
