"""New content → the Lab Delivery System, whose deployments fetch the form again.

Nothing waits for it: the content stored in the cluster stays authoritative. A deployment that fails is only logged.
"""

from dataclasses import dataclass
from typing import Final

import structlog

from vkprovider.labs.lds.deployments import Deployments
from vkprovider.platform.errors import OutsideError
from vkprovider.platform.kube.queue import KeyedQueue, Result

_log: Final = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class LdsContent:
    """Notifies LDS deployments of forms whose content changed.

    Attributes:
        deployments: None if no LDS is configured, or none is to be asked; nothing is queued then.
        queue: Of forms, by qualified name.
    """

    deployments: Deployments | None
    queue: KeyedQueue[str]

    def changed(self, form: str) -> None:
        """Queue a form, by its qualified name."""
        if self.deployments is not None:
            self.queue.add(form)

    async def refresh(self, form: str) -> Result:
        """Ask every deployment to fetch one form again."""
        if self.deployments is not None:
            for deployment, answer in (await self.deployments.refresh_content(form)).items():
                if isinstance(answer, OutsideError):
                    _log.warning("lds did not refresh", deployment=deployment, form=form, error=str(answer))
                else:
                    _log.info("lds refreshed", deployment=deployment, form=form, version=answer.version)
        return Result()
