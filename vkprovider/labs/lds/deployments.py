"""All deployments of the LDS: a client for each, the choice among them, and a configuration that may change."""

import asyncio
import random
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

import structlog

from vkprovider.lablet.reasons import Trouble
from vkprovider.labs.lds import config
from vkprovider.labs.lds.client import open_deployment
from vkprovider.labs.lds.config import Configured
from vkprovider.labs.lds.dialect import Full
from vkprovider.labs.lds.spi import LabDelivery
from vkprovider.labs.lds.wire import ContentMetadata
from vkprovider.labs.pure.session import deployments
from vkprovider.labs.pure.session.deployments import Choice, DeploymentHealth, LdsDeployment
from vkprovider.labs.settings.services import LdsSettings
from vkprovider.platform.errors import InputError, OutsideError
from vkprovider.platform.settings import is_plain, reveal
from vkprovider.rest.tokens import TokenReader

RELOAD_S: Final = 5.0
"""Seconds between two looks at the file; a mounted ConfigMap changes without a notice."""

_log: Final = structlog.get_logger(__name__)


class Deployments:
    """The deployments of the configuration.

    A deployment that still has sessions must be disabled in the file, not removed: they could not be archived.

    Args:
        settings: The settings.
        user_agent: The name of this client in the LDS's log.

    Attributes:
        problem: Why the current file is not used, and the one before still is; empty if it is used.

    Raises:
        InputError: `SettingInvalid`: the configuration is wrong from the beginning.
    """

    def __init__(self, settings: LdsSettings, *, user_agent: str = "") -> None:
        self.problem = ""
        self._settings = settings
        self._user_agent = user_agent
        self._configured: dict[str, Configured] = {}
        self._clients: dict[str, LabDelivery] = {}
        self._retired: list[LabDelivery] = []
        self._health: dict[str, DeploymentHealth] = {}
        self._last = ""
        self._settings, configured = _read(settings)
        self._apply(configured)

    @property
    def deployments(self) -> tuple[LdsDeployment, ...]:
        """All of them, as configured."""
        return tuple(each.deployment for each in self._configured.values())

    @property
    def health(self) -> Mapping[str, DeploymentHealth]:
        """The health of each, by id."""
        return self._health

    def choose(self, load: Mapping[str, int], *, affinity: str | None = None) -> Choice:
        """Choose the deployment of a new session; nothing is reserved, see `took`.

        The caller persists the choice before it creates the session, and keeps to it until it knows that the session
        was not created: `rest.errors.may_have_happened`.

        Args:
            load: Live sessions by deployment: those of all replicas, and those about to be created.
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
            strategy=self._settings.strategy,
            last=self._last,
            affinity=affinity,
        )

    def took(self, deployment: str, *, affinity: str | None = None, warning: str = "") -> None:
        """Note that a choice was followed: the rotation continues from there, unless it was the affinity's."""
        if warning:
            _log.warning("lds affinity not followed", why=warning, deployment=deployment)
        if warning or not affinity:
            self._last = deployment

    def client(self, deployment: str) -> LabDelivery:
        """Return the client of a deployment, enabled or not; see `LabDelivery.guarded`.

        Raises:
            InputError: `LDSDeploymentUnknown`: it is not configured, or not any more.
        """
        try:
            return self._clients[deployment]
        except KeyError:
            raise InputError(
                Trouble.LDS_DEPLOYMENT_UNKNOWN,
                f"LDS deployment {deployment} is not configured: put it back into lds_deployments, with "
                "enabled: false, until its sessions have ended",
            ) from None

    async def refresh_content(self, form_qualified_name: str) -> dict[str, ContentMetadata | OutsideError]:
        """Make every deployment fetch a form's content again; return the outcomes by id.

        A disabled one, too: it still serves the sessions that it has.
        """

        async def ask(deployment: str) -> ContentMetadata | OutsideError:
            try:
                return await self._clients[deployment].refresh_content(form_qualified_name)
            except OutsideError as error:
                return error

        ids = [each.id for each in self.deployments]
        return dict(zip(ids, await asyncio.gather(*map(ask, ids)), strict=True))

    async def reload(self) -> bool:
        """Read the configuration again and return whether anything changed; a wrong one changes `problem` only."""
        try:
            self._settings, configured = await asyncio.to_thread(_read, self._settings)
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
            await self.reload()

    async def close(self) -> None:
        """Close all connections."""
        for client in (*self._clients.values(), *self._retired):
            await client.close()

    def _apply(self, configured: tuple[Configured, ...]) -> None:
        before, self._configured = self._configured, {each.deployment.id: each for each in configured}
        if plain := [each.deployment.id for each in configured if is_plain(each.deployment.base_url)]:
            _log.warning("lds deployments are reached in plain text", deployments=sorted(plain))
        for gone in before.keys() - self._configured.keys():
            self._retire(gone)
        for name, each in self._configured.items():
            if name not in before or _reach(before[name]) != _reach(each):
                self._retire(name)
                self._clients[name] = self._open(each)

    def _retire(self, name: str) -> None:
        """Retire a client; calls under way end by themselves."""
        self._health.pop(name, None)
        client = self._clients.pop(name, None)
        if client is not None:
            self._retired.append(client)

    def _open(self, configured: Configured) -> LabDelivery:
        name = configured.deployment.id
        return open_deployment(
            name,
            configured.deployment.base_url,
            token=self._token_of(configured),
            timeout_s=configured.timeout_s,
            ca_bundle=configured.ca_bundle,
            report=partial(self._report, name, configured),
            user_agent=self._user_agent,
        )

    def _token_of(self, configured: Configured) -> TokenReader:
        path, token = configured.token_file, reveal(self._settings.token)

        async def given() -> str | None:
            return token

        async def of_file() -> str:
            return (await asyncio.to_thread(Path(path or "").read_text, "utf-8")).strip()

        return given if path is None else of_file

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


def _read(settings: LdsSettings) -> tuple[LdsSettings, tuple[Configured, ...]]:
    """Read the configuration; return it after the settings of the next reading.

    Once the file has been read, a missing one is a fault: its deployments have sessions that LDS_API_URL does not know.
    """
    by_file = config.from_file(settings)
    configured = config.read(settings)
    return (settings.model_copy(update={"url": ""}) if by_file else settings), configured


def _reach(configured: Configured) -> tuple[object, ...]:
    """Return the parts of a deployment that its client is made of."""
    return configured.deployment.base_url, configured.timeout_s, configured.token_file, configured.ca_bundle
