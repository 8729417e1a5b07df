"""The CML simulator as tests use it: every answer of its API is checked against the shapes of CML's."""

from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any

from aiohttp import web

from tests.support.cmlapi.table import UnlikeCmlError, check
from vkpsim.cml import server

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class CmlSimulator(server.CmlSimulator):
    """A simulator that remembers which of its answers a CML would not give; a test that met one fails at its end."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.unlike: list[str] = []
        super().__init__(*arguments, **options, middlewares=[self._checked()])

    def _checked(self) -> Any:
        @web.middleware
        async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
            response = await handler(request)
            path = request.path.removeprefix(server.BASE)
            answered = request.transport is not None and not request.transport.is_closing()
            if answered and path != request.path and isinstance(response, web.Response):
                try:
                    check(request.method, path, response.status, response.content_type, bytes(response.body or b""))  # type: ignore[arg-type]  # (its bodies are bytes)
                except UnlikeCmlError as error:
                    self.unlike.append(f"{request.method} {path} {response.status}: {error}")
            return response

        return middleware

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await super().__aexit__(kind, error, traceback)
        if error is None and self.unlike:
            raise AssertionError("answers that a CML would not give:\n" + "\n".join(self.unlike))
