"""JupyterHub's own fixtures, around a hub whose spawner is ours, and a small portal."""

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from jupyterhub.tests.mocking import MockHub
from jupyterhub.user import User
from traitlets.config import Config

from hub.tests.portal import HUB_TOKEN, Portal, user_token

pytest_plugins = ["jupyterhub.tests.conftest"]

os.environ["PATH"] = f"{Path(sys.prefix) / 'npm' / 'node_modules' / '.bin'}{os.pathsep}{os.environ['PATH']}"


@pytest.fixture(scope="module")
async def served_portal() -> AsyncIterator[Portal]:
    async with Portal().served() as portal:
        yield portal


@pytest.fixture
def portal(served_portal: Portal) -> Iterator[Portal]:
    """Yield the module's portal as it is when it is new."""
    new = Portal()
    for name, value in vars(new).items():
        if name not in ("url", "tasks"):
            setattr(served_portal, name, value)
    yield served_portal
    served_portal.silent, served_portal.foreign = False, None
    served_portal.hold, served_portal.refusal = None, None


@pytest.fixture(scope="module")
def token_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("hub") / "token"
    file.write_text(HUB_TOKEN)
    return file


@pytest.fixture(scope="module")
async def app(served_portal: Portal, token_file: Path) -> AsyncIterator[Any]:
    """Yield JupyterHub's `MockHub` with our spawner and a real configurable-http-proxy."""
    config = Config()
    config.JupyterHub.spawner_class = "vkprovider"
    async with hub_of(served_portal, token_file, config) as hub:
        yield hub


@contextlib.asynccontextmanager
async def hub_of(portal: Portal, token_file: Path, config: Config) -> AsyncIterator[Any]:
    config.VkproviderSpawner.service_url = portal.url
    config.VkproviderSpawner.token_file = str(token_file)
    config.VkproviderSpawner.poll_interval = 3600
    config.JupyterHub.proxy_class = "vkprovider"
    config.JupyterHub.cookie_secret_file = str(token_file.parent / "cookies")
    hub = MockHub.instance(config=config)
    await hub.initialize([])
    await hub.start()
    yield hub
    hub.log.handlers = []
    MockHub.clear_instance()
    await hub.stop()
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.sleep(5)  # the hub then cancels all that runs in its loop


@pytest.fixture(autouse=True)
def tokens() -> Iterator[None]:
    """Let each user have logged in with a token; `test_hub` does so for real."""

    async def get_auth_state(user: User) -> dict[str, str]:
        return {"token": user_token(user.name)}

    with mock.patch.object(User, "get_auth_state", get_auth_state):
        yield
