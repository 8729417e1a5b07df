"""Our spawner with what JupyterHub's own tests expect of their spawners: the variants of `jupyterhub.tests.mocking`.

Each one adds what its namesake there adds to the class that it is made of; the rest is ours.
"""

import asyncio
from typing import Any, ClassVar

from jupyterhub.spawner import SpawnException
from jupyterhub.tests import mocking
from jupyterhub_vkprovider.dialects import Kind, Line
from jupyterhub_vkprovider.spawner import VkproviderSpawner
from traitlets import Integer, Unicode, default


class MockSpawner(VkproviderSpawner):
    """Tells the lab how it was asked for, and takes a token that a test gives it."""

    use_this_api_token: str | None = None

    @default("options_form")
    def _options_form_default(self) -> str:
        return ""

    def get_env(self) -> dict[str, Any]:
        env: dict[str, Any] = super().get_env()
        if self.handler:
            env["HANDLER_ARGS"] = self.handler.request.query
        return env

    async def start(self) -> str:
        if self.use_this_api_token:
            self.api_token = self.use_this_api_token
        elif self.will_resume:
            self.use_this_api_token = self.api_token
        return await super().start()


class SlowSpawner(MockSpawner):
    delay = 2
    _start_future: asyncio.Future[None] | None = None

    async def start(self) -> str:
        address = await super().start()
        if self._start_future is not None:
            await self._start_future
        else:
            await asyncio.sleep(self.delay)
        return address

    async def stop(self, now: bool = False) -> None:  # noqa: FBT001, FBT002 (JupyterHub's signature)
        await asyncio.sleep(self.delay)
        await super().stop(now)


class NeverSpawner(MockSpawner):
    """Asks for a lab, and never is told that it is ready."""

    @default("start_timeout")
    def _start_timeout_default(self) -> int:
        return 1

    async def start(self) -> str:
        await super().start()
        await asyncio.Future()
        return ""


class BadSpawner(MockSpawner):
    async def start(self) -> str:
        raise RuntimeError("I don't work!")


class CustomBadSpawner(MockSpawner):
    status_code = Integer(418, config=True)
    message = Unicode("custom message", config=True)
    reason = Unicode("custom reason", config=True)

    async def start(self) -> str:
        raise SpawnException(self.message, reason=self.reason, status_code=self.status_code)


class SlowBadSpawner(MockSpawner):
    """Tells a line before it fails, as the base class of its namesake does."""

    async def start(self) -> str:
        await self._told.add(Line(Kind.INFO, "Spawning server...", 50))
        await asyncio.sleep(0.5)
        raise RuntimeError("I don't work!")


class FormSpawner(MockSpawner):
    energy = Unicode()
    my_display_name = Unicode()
    opt_foo = Unicode()
    options_form = mocking.FormSpawner.options_form
    apply_user_options: ClassVar[dict[str, str]] = mocking.FormSpawner.apply_user_options
    options_from_form = mocking.FormSpawner.options_from_form

    def get_env(self) -> dict[str, Any]:
        return {**super().get_env(), "ENERGY": self.energy}


class FalsyCallableFormSpawner(FormSpawner):
    @staticmethod
    def options_form(_: Any) -> str:
        return ""


ALL = (
    MockSpawner,
    SlowSpawner,
    NeverSpawner,
    BadSpawner,
    CustomBadSpawner,
    SlowBadSpawner,
    FormSpawner,
    FalsyCallableFormSpawner,
)
