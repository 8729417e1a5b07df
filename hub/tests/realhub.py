"""A real JupyterHub and its proxy, each a process, as Zero to JupyterHub runs them; and a learner with cookies."""

import asyncio
import os
import secrets
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from yarl import URL

CONFIG = """
import os
import jupyterhub_vkprovider
c = get_config()
c.JupyterHub.template_paths = [jupyterhub_vkprovider.TEMPLATES]
here = os.environ["HUB_TEST"]
c.JupyterHub.spawner_class = "vkprovider"
c.JupyterHub.proxy_class = "vkprovider"
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allow_all = True
c.Authenticator.enable_auth_state = True
c.DummyAuthenticator.password = "learning"
c.JupyterHub.cleanup_servers = False
c.JupyterHub.cleanup_proxy = False
c.JupyterHub.db_url = f"sqlite:///{here}/hub.sqlite"
c.JupyterHub.cookie_secret_file = f"{here}/cookies"
c.JupyterHub.pid_file = f"{here}/hub.pid"
c.JupyterHub.bind_url = f"http://127.0.0.1:{os.environ['HUB_PORT']}"
c.JupyterHub.hub_port = int(os.environ["HUB_API_PORT"])
c.JupyterHub.tornado_settings = {"slow_spawn_timeout": 0}
c.JupyterHub.load_roles = [
    {"name": "watcher", "services": ["watcher"], "scopes": ["admin:users", "admin:servers"]},
    {"name": "user", "scopes": ["self", "access:services!service=vkprovider", "admin:auth_state!user"]},
]
c.JupyterHub.services = [
    {"name": "watcher", "api_token": os.environ["HUB_WATCHER"]},
    {
        "name": "vkprovider",
        "url": os.environ["HUB_PORTAL"],
        "api_token": os.environ["HUB_SERVICE"],
        "oauth_no_confirm": True,
        "oauth_client_allowed_scopes": ["admin:auth_state!user"],
    },
]
c.ConfigurableHTTPProxy.should_start = False
c.ConfigurableHTTPProxy.api_url = f"http://127.0.0.1:{os.environ['HUB_PROXY_API_PORT']}"
c.VkproviderSpawner.service_url = c.VkproviderSpawner.page_url = os.environ["HUB_PORTAL"]
c.VkproviderSpawner.dialect = os.environ["HUB_DIALECT"]
c.VkproviderSpawner.token_file = f"{here}/token"
c.VkproviderSpawner.service_ca_file = os.environ.get("SSL_CERT_FILE", "")
c.Spawner.http_timeout = 3
async def token_for_the_portal(authenticator, handler, authentication):
    name = authentication["name"]
    kept = os.path.join(here, "tokens", name)
    token = open(kept).read() if os.path.exists(kept) else f"token-of-{name}"
    return {**authentication, "auth_state": {"token": token}}
c.Authenticator.post_auth_hook = token_for_the_portal
"""
TRUST = ("SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS")


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


@dataclass
class RealHub:
    """The two processes; the hub can be killed and started again.

    Attributes:
        folder: The hub's database, cookies, token and log; `tokens` in it may have that of each learner.
        portal_url: The portal.
        hub_token: The hub's own token.
        ca_file: Certificates that both processes trust.
        venv: Where JupyterHub is installed.
        ports: Of the proxy, the hub's API and the proxy's.
        service: The token of the service that the portal is.
        dialect: Of the portal.
        more: Lines after those of the configuration.
        errors: The folder of the proxy's own pages of errors; by default the hub has them.
    """

    folder: Path
    portal_url: str
    hub_token: str
    ca_file: Path | None = None
    venv: Path = Path(sys.prefix)
    ports: list[int] = field(default_factory=lambda: free_ports(3))
    service: str = field(default_factory=lambda: secrets.token_hex(16))
    dialect: str = "sqr066"
    more: str = ""
    errors: Path | None = None
    watcher: str = field(default_factory=lambda: secrets.token_hex(16))
    processes: dict[str, asyncio.subprocess.Process] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.ports[0]}"

    @asynccontextmanager
    async def running(self) -> AsyncIterator["RealHub"]:
        (self.folder / "config.py").write_text(CONFIG + self.more)
        (self.folder / "token").write_text(self.hub_token)
        try:
            await self._run(
                "proxy",
                str(self.venv / "npm" / "node_modules" / ".bin" / "configurable-http-proxy"),
                *("--ip", "127.0.0.1", "--port", str(self.ports[0]), "--api-ip", "127.0.0.1"),
                *("--api-port", str(self.ports[2]), "--error-target", f"http://127.0.0.1:{self.ports[1]}/hub/error"),
                *(() if self.errors is None else ("--error-target=", f"--error-path={self.errors}")),
            )
            await self.start()
            yield self
        finally:
            for name in list(self.processes):
                await self.kill(name)

    async def start(self) -> None:
        """Start the hub, and wait until it answers."""
        await self._run(
            "hub", str(self.venv / "bin" / "python"), "-m", "jupyterhub", "-f", str(self.folder / "config.py")
        )
        async with asyncio.timeout(60), aiohttp.ClientSession() as session:
            while True:
                try:
                    async with session.get(f"{self.url}/hub/api/") as answer:
                        if answer.status == 200:
                            return
                except aiohttp.ClientError:
                    pass
                assert self.processes["hub"].returncode is None, self.log()
                await asyncio.sleep(0.1)

    async def kill(self, name: str = "hub") -> None:
        process = self.processes.pop(name)
        if process.returncode is None:
            process.kill()
        await process.wait()

    def log(self) -> str:
        return (self.folder / "hub.log").read_text()

    async def user(self, name: str) -> dict[str, Any]:
        """Return what the hub's API says of a user."""
        headers = {"Authorization": f"token {self.watcher}"}
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.get(f"{self.url}/hub/api/users/{name}") as answer,
        ):
            assert answer.status == 200, await answer.text()
            found: dict[str, Any] = await answer.json()
            return found

    async def ready(self, name: str) -> bool:
        """Whether a user has a server that can be used."""
        server = (await self.user(name))["servers"].get("")
        return bool(server and server["ready"])

    async def _run(self, name: str, *command: str) -> None:
        environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "JUPYTERHUB_"))},
            "HUB_TEST": str(self.folder),
            "HUB_PORT": str(self.ports[0]),
            "HUB_API_PORT": str(self.ports[1]),
            "HUB_PROXY_API_PORT": str(self.ports[2]),
            "HUB_PORTAL": self.portal_url,
            "HUB_WATCHER": self.watcher,
            "HUB_SERVICE": self.service,
            "HUB_DIALECT": self.dialect,
            "CONFIGPROXY_AUTH_TOKEN": self.watcher[::-1],
            "JUPYTERHUB_CRYPT_KEY": self.watcher * 2,
            **({} if self.ca_file is None else dict.fromkeys(TRUST, str(self.ca_file))),
        }
        with (self.folder / f"{name}.log").open("a") as log:
            self.processes[name] = await asyncio.create_subprocess_exec(
                *command, cwd=self.folder, env=environment, stdout=log, stderr=log, stdin=asyncio.subprocess.DEVNULL
            )


@dataclass
class Learner:
    """A learner's browser without a window: cookies, forms, redirects."""

    hub: RealHub
    name: str
    session: aiohttp.ClientSession

    @classmethod
    @asynccontextmanager
    async def of(cls, hub: RealHub, name: str) -> AsyncIterator["Learner"]:
        jar = aiohttp.CookieJar(unsafe=True, treat_as_secure_origin=URL(hub.url))  # as browsers do on this machine
        async with aiohttp.ClientSession(cookie_jar=jar, timeout=aiohttp.ClientTimeout(total=120)) as session:
            learner = cls(hub, name, session)
            await learner.get("/hub/login")
            answer = await learner.post("/hub/login", {"username": name, "password": "learning"})
            assert answer[0] == 200, answer
            yield learner

    async def get(self, path: str) -> tuple[int, str, str]:
        """Return status, address and text of a page."""
        async with self.session.get(f"{self.hub.url}{path}") as answer:
            return answer.status, answer.url.path, await answer.text()

    async def post(self, path: str, form: dict[str, str]) -> tuple[int, str, str]:
        cookies = self.session.cookie_jar.filter_cookies(URL(f"{self.hub.url}/hub/"))
        async with self.session.post(
            f"{self.hub.url}{path}", params={"_xsrf": cookies["_xsrf"].value}, data=form
        ) as answer:
            return answer.status, answer.url.path, await answer.text()

    async def server(self, method: str, options: dict[str, str] | None = None) -> tuple[int, str]:
        """Ask the hub's API for the own server, as its pages do: POST starts it, DELETE stops it."""
        cookies = self.session.cookie_jar.filter_cookies(URL(f"{self.hub.url}/hub/"))
        url = f"{self.hub.url}/hub/api/users/{self.name}/server"
        async with self.session.request(method, url, params={"_xsrf": cookies["_xsrf"].value}, json=options) as answer:
            return answer.status, await answer.text()

    async def stop(self) -> None:
        """Stop the own server."""
        status, text = await self.server("DELETE")
        assert status in (202, 204), text
