"""One Pod of a test: what its user does with it, and what everyone sees of it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.component.controllers.looking import eventually, is_ready, rows_of, waiting
from tests.support.apiserver import CONFIG_MAPS, Admin


@dataclass(frozen=True)
class Lablet:
    """One Pod."""

    admin: Admin
    namespace: str
    worker: str
    name: str
    uid: str

    @property
    def path(self) -> str:
        """Its path."""
        return f"/api/v1/namespaces/{self.namespace}/pods/{self.name}"

    async def until(self, good: Callable[[dict[str, Any]], object], what: str = "") -> dict[str, Any]:
        """Wait until the Pod satisfies a condition."""
        return await self.admin.until(self.path, good, what)

    async def ready(self) -> dict[str, Any]:
        """Wait until it is Ready."""
        return await self.until(is_ready, "not Ready")

    async def waits(self, reason: str) -> dict[str, Any]:
        """Wait until its container `lab` waits for a reason; return what it says."""
        found = await self.until(lambda pod: waiting(pod).get("reason") == reason, f"not waiting: {reason}")
        return waiting(found)

    async def annotate(self, **annotations: str | None) -> None:
        """Set annotations of our group: `username="alice"`; `_` stands for `-`."""
        values = {f"vkprovider.io/{name.replace('_', '-')}": value for name, value in annotations.items()}
        await self.admin.patch(self.path, {"metadata": {"annotations": values}})

    async def delete(self, *, grace_s: int | None = None) -> None:
        """Delete the Pod; with 0 at once, as `kubectl delete --force` does."""
        await self.admin.delete(self.path, grace_s=grace_s)

    async def gone(self) -> None:
        """Wait until the Pod does not exist; its row may stay ten seconds longer."""
        await self.admin.until_gone(self.path)

    async def claim(self, good: Callable[[dict[str, Any]], object] = bool) -> dict[str, Any]:
        """Wait until its row in the API server satisfies a condition."""

        async def look() -> dict[str, Any] | None:
            row = (await self._rows()).get(self.uid)
            return row if row is not None and good(row) else None

        found = await eventually(look, f"claim of {self.name}")
        assert found is not None
        return found

    async def unclaimed(self) -> None:
        """Wait until no row names it."""

        async def look() -> bool:
            return self.uid not in await self._rows()

        await eventually(look, f"no claim of {self.name}")

    async def _rows(self) -> dict[str, dict[str, Any]]:
        return rows_of(await self.admin.get(f"{CONFIG_MAPS}/{self.worker}-port-allocations"))
