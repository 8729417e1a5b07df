"""All deployments of the LDS: a client for each, the choice among them, and a configuration that may change."""

import asyncio
import random
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
import structlog

from vkprovider.api.errors import InputError, OutsideError
from vkprovider.domain.session import deployments
from vkprovider.domain.session.deployments import Choice, Deployment, Health
from vkprovider.lds import config
from vkprovider.lds.client import LdsClient
from vkprovider.lds.config import Configured, Source
from vkprovider.lds.connection import Connection, TokenReader
from vkprovider.lds.errors import Full
from vkprovider.lds.spi import ContentMetadata

RELOAD_S: Final = 5.0
"""Seconds between two looks at the file; a mounted ConfigMap changes without a notice."""

_log: Final = structlog.get_logger(__name__)


class Deployments:
    """The deployments of the configuration.

    A deployment that still has sessions is disabled in the file, not removed: nobody could archive them.

    Args:
        source: What the settings say.
        user_agent: What the LDS's log calls us.

    Attributes:
        problem: Why the file as it is now is not used, and the one before still is; empty if it is used.

    Raises:
        InputError: `SettingInvalid`: the configuration is wrong from the beginning.
    """

    def __init__(self, source: Source, *, user_agent: str = "") -> None:
        self.problem = ""
        self._source = source
        self._user_agent = user_agent
        self._configured: dict[str, Configured] = {}
        self._clients: dict[str, LdsClient] = {}
        self._retired: list[LdsClient] = []
        self._health: dict[str, Health] = {}
        self._last = ""
        self._apply(self._read())

    @property
    def deployments(self) -> tuple[Deployment, ...]:
        """All of them, as configured."""
        return tuple(each.deployment for each in self._configured.values())

    @property
    def health(self) -> Mapping[str, Health]:
        """How each of them does, by id."""
        return self._health

    def choose(self, load: Mapping[str, int], *, affinity: str | None = None) -> Choice:
        """Choose the deployment of a new session, without committing anybody to it; see `took`.

        The caller writes the choice down before it creates the session, and keeps to it until it knows that there is
        none: `errors.may_have_happened`.

        Args:
            load: Live sessions by deployment, those of all replicas, and those that are about to be made.
            affinity: The id that the lablet's definition prefers.

        Raises:
            InputError: `NoLDSDeployment`: none is enabled, or all of those are full.
            Throttled: All that are enabled and have room failed a moment ago.
        """
        return deployments.choose(
            self.deployments,
            load=load,
            health=self._health,
            now_s=time.monotonic(),
            strategy=self._source.strategy,
            last=self._last,
            affinity=affinity,
        )

    def took(self, deployment: str, *, affinity: str | None = None, warning: str = "") -> None:
        """Note that a choice was followed: the next one goes on from there, unless it was the affinity's."""
        if warning:
            _log.warning("lds affinity not followed", why=warning, deployment=deployment)
        if warning or not affinity:
            self._last = deployment

    def client(self, deployment: str) -> LdsClient:
        """Give the client of a deployment, enabled or not; `guarded` of it takes a guard.

        Raises:
            InputError: `LDSDeploymentUnknown`: it is not configured (any more).
        """
        try:
            return self._clients[deployment]
        except KeyError:
            raise InputError(
                "LDSDeploymentUnknown",
                f"LDS deployment {deployment} is not configured: put it back into lds_deployments, with "
                "enabled: false, until its sessions have ended",
            ) from None

    async def refresh_content(self, form_qualified_name: str) -> dict[str, ContentMetadata | OutsideError]:
        """Have every enabled deployment fetch a form's content anew, and tell what came of it, by id."""

        async def ask(deployment: str) -> ContentMetadata | OutsideError:
            try:
                return await self._clients[deployment].refresh_content(form_qualified_name)
            except OutsideError as error:
                return error

        ids = [each.id for each in self.deployments if each.enabled]
        return dict(zip(ids, await asyncio.gather(*map(ask, ids)), strict=True))

    def reload(self) -> bool:
        """Read the configuration again; a wrong one changes nothing but `problem`. Tell whether anything changed."""
        try:
            configured = self._read()
        except InputError as error:
            if error.message != self.problem:
                _log.warning("lds deployments not reloaded, the ones before stay", why=error.message)
            self.problem = error.message
            return False
        self.problem = ""
        if {each.deployment.id: each for each in configured} == self._configured:
            return False
        self._apply(configured)
        _log.info("lds deployments reloaded", deployments=sorted(self._configured))
        return True

    async def watch(self, every_s: float = RELOAD_S) -> None:
        """Reload when the file changes, until cancelled."""
        while True:
            await asyncio.sleep(every_s)
            self.reload()

    async def close(self) -> None:
        """Close all connections."""
        for client in (*self._clients.values(), *self._retired):
            await client.close()

    def _read(self) -> tuple[Configured, ...]:
        spoken = config.from_file(self._source)
        configured = config.read(self._source)
        if spoken:
            # From now on a missing file is a fault: its deployments have sessions that LDS_API_URL knows nothing of.
            self._source = msgspec.structs.replace(self._source, url="")
        return configured

    def _apply(self, configured: tuple[Configured, ...]) -> None:
        before, self._configured = self._configured, {each.deployment.id: each for each in configured}
        for gone in before.keys() - self._configured.keys():
            self._retire(gone)
        for name, each in self._configured.items():
            if name not in before or _reach(before[name]) != _reach(each):
                self._retire(name)
                self._clients[name] = self._open(each)

    def _retire(self, name: str) -> None:
        """Take a client out of use; calls under way end by themselves."""
        self._health.pop(name, None)
        client = self._clients.pop(name, None)
        if client is not None:
            self._retired.append(client)

    def _open(self, configured: Configured) -> LdsClient:
        name = configured.deployment.id
        return LdsClient(
            Connection(
                name,
                configured.deployment.base_url,
                token=self._token_of(configured),
                timeout_s=configured.timeout_s,
                ca_bundle=configured.ca_bundle,
                report=partial(self._report, name, configured),
                user_agent=self._user_agent,
            )
        )

    def _token_of(self, configured: Configured) -> TokenReader:
        path, token = configured.token_file, self._source.token
        if path is None:
            return lambda: token
        return lambda: Path(path).read_text("utf-8").strip()

    def _report(self, name: str, of: Configured, error: OutsideError | None) -> None:
        now = self._configured.get(name)
        if now is None or _reach(now) != _reach(of):
            return  # of a client that was taken out of use
        before = self._health.get(name, deployments.WELL)
        health = deployments.after(
            before, error, now_s=time.monotonic(), full=isinstance(error, Full), dice=random.random()
        )
        self._health[name] = health
        if health.failures and not before.failures:
            _log.warning("lds deployment avoided for a while", deployment=name, why=health.why)
        elif before.failures and not health.failures:
            _log.info("lds deployment answers again", deployment=name)


def _reach(configured: Configured) -> tuple[object, ...]:
    """What a client is made of."""
    return configured.deployment.base_url, configured.timeout_s, configured.token_file, configured.ca_bundle
