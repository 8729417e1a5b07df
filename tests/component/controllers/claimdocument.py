"""The claims ConfigMap of a worker on the real API server, as an editor of it sees it, and a store that writes it."""

import json
from dataclasses import dataclass
from typing import Any

from tests.support.apiserver import CONFIG_MAPS, Admin
from tests.support.faultyapi import Fault, FaultyApi

KEY = "allocations.json"


@dataclass(frozen=True)
class ClaimDocument:
    """The ConfigMap of worker `w1`."""

    admin: Admin
    api: FaultyApi

    @property
    def path(self) -> str:
        return f"{CONFIG_MAPS}/w1-port-allocations"

    @property
    def writes(self) -> int:
        """How many writes the API server has accepted."""
        return sum(asked.status < 300 for asked in self.api.matching("^(POST|PUT) .*configmaps"))

    def lose_an_answer(self) -> Fault:
        """Lose the answer to the next write that the API server receives."""
        return self.api.fault("^(POST|PUT) .*configmaps", lose=True, status=504)

    async def found(self) -> dict[str, Any] | None:
        """Return the ConfigMap, None if there is none."""
        return await self.admin.get(self.path)

    async def change(self, found: dict[str, Any]) -> None:
        """Replace the ConfigMap, whatever its version is now."""
        found["metadata"].pop("resourceVersion", None)
        await self.admin.replace(self.path, found)

    async def remove(self) -> None:
        await self.admin.delete(self.path)

    async def text(self) -> str:
        """Return the document as it is written."""
        found = await self.found()
        assert found is not None
        text: str = found["data"][KEY]
        return text

    async def write_text(self, text: str) -> None:
        await self.admin.patch(self.path, {"data": {KEY: text}})

    async def read(self) -> dict[str, Any]:
        """Return the document."""
        document: dict[str, Any] = json.loads(await self.text())
        return document

    async def write(self, document: dict[str, Any]) -> None:
        await self.write_text(json.dumps(document))
