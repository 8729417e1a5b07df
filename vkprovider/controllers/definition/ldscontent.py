"""New content → the Lab Delivery System: every deployment may fetch the form anew.

Nothing waits for it, and what is stored here stays authoritative; a deployment that fails is logged and left to itself.
"""

from typing import Final

import structlog

from vkprovider.api.errors import OutsideError
from vkprovider.kube.queue import KeyedQueue, Result
from vkprovider.lds.deployments import Deployments

_log: Final = structlog.get_logger(__name__)


class LdsContent:
    """Tells the deployments of forms whose content changed."""

    def __init__(self, deployments: Deployments | None, queue: KeyedQueue[str]) -> None:
        self._deployments = deployments
        self._queue = queue

    def changed(self, form: str) -> None:
        """Have the deployments told of a form; its qualified name."""
        if self._deployments is not None:
            self._queue.add(form)

    async def refresh(self, form: str) -> Result:
        """Ask every deployment to fetch one form anew."""
        if self._deployments is not None:
            for deployment, told in (await self._deployments.refresh_content(form)).items():
                if isinstance(told, OutsideError):
                    _log.warning("lds did not refresh", deployment=deployment, form=form, error=str(told))
                else:
                    _log.info("lds refreshed", deployment=deployment, form=form, version=told.version)
        return Result()
