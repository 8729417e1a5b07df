"""The ConfigMap of one worker's claims: read and written as a whole, with its version as precondition."""

from typing import Final

from vkprovider.lablet import names
from vkprovider.labs.pure.claims import document
from vkprovider.labs.pure.claims.document import StoredClaims
from vkprovider.platform import wellknown
from vkprovider.platform.errors import Fenced, NotFound, OutsideError
from vkprovider.platform.kube.client import Guard
from vkprovider.platform.kube.flow import Lane
from vkprovider.platform.runtime.context import Context


class ClaimsConfigMap:
    """The ConfigMap of one worker's claims.

    Attributes:
        uid: Of the object that was last read or written; "" if there is none.
    """

    def __init__(self, ctx: Context, worker: str, worker_uid: str, guard: Guard) -> None:
        """Describe the object; nothing is read yet.

        Args:
            ctx: The replica.
            worker: The CMLWorker's name.
            worker_uid: Its UID; it owns the ConfigMap.
            guard: Called right before every write.
        """
        self._ctx: Final = ctx
        self._worker: Final = worker
        self._worker_uid: Final = worker_uid
        self._guard: Final = guard
        self._version = ""
        self.uid = ""

    async def read(self) -> StoredClaims | None:
        """Read the claims; None if there is no ConfigMap.

        Raises:
            InputError: `ClaimStoreInvalid`.
        """
        config_map = await self._ctx.api.config_maps.get(names.claims_name(self._worker))
        if config_map is None:
            self.forget()
            return None
        stored = document.read(config_map, worker=self._worker, installation=self._ctx.installation)
        self.uid, self._version = config_map.metadata.uid, config_map.metadata.resource_version
        return stored

    async def write(self, data: dict[str, str], binary: dict[str, str]) -> None:
        """Create or replace the ConfigMap.

        Raises:
            NotFound: It was deleted; the next write creates it.
            Conflict: Another client wrote it; read it first.
            OutsideError: Any other of its kinds.
        """
        metadata: dict[str, object] = {
            "name": names.claims_name(self._worker),
            "namespace": self._ctx.namespace,
            "labels": {wellknown.LABEL_MANAGED_BY: wellknown.MANAGER, names.LABEL_COMPONENT: names.COMPONENT_CLAIMS},
            "annotations": {wellknown.ANNOTATION_INSTALLATION: self._ctx.installation},
            "ownerReferences": [
                {
                    "apiVersion": wellknown.API_VERSION,
                    "kind": "CMLWorker",
                    "name": self._worker,
                    "uid": self._worker_uid,
                }
            ],
        }
        body: dict[str, object] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        body |= {"data": data} if data else {"binaryData": binary}
        config_maps = self._ctx.api.config_maps.metadata_only
        if self._version:
            metadata["resourceVersion"] = self._version
        send = config_maps.replace if self._version else config_maps.create
        try:
            written = await send(body, guard=self._guard, lane=Lane.AT_ONCE)
        except NotFound:
            self.forget()
            raise
        self.uid, self._version = written.metadata.uid, written.metadata.resource_version

    async def delete(self) -> None:
        """Delete the ConfigMap, if there is one, as it was last read or written.

        Raises:
            Conflict: Another client wrote it, or what it wrote could not be merged; read it first.
            OutsideError: Any other of its kinds.
        """
        uid, name = self.uid, names.claims_name(self._worker)
        if not uid:
            return
        self.uid = ""  # its deletion is no loss
        try:
            await self._ctx.api.config_maps.delete(name, uid=uid, resource_version=self._version, guard=self._guard)
        except (OutsideError, Fenced):
            self.uid = uid
            raise
        self.forget()

    def force_reread(self) -> None:
        """Note that what was read last could not be merged: the next write finds the conflict again."""
        self._version = ""

    def forget(self) -> None:
        """Note that the object was deleted: the next write creates it."""
        self.uid = self._version = ""
