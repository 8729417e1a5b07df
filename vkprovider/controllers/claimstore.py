"""The claims of one worker: a dictionary in memory, a ConfigMap behind it, written in batches.

`put` takes effect in memory at once; `saved` tells when the API server has it. All lablets that wait for a write share
it, so a burst of a hundred lablets costs a handful of writes. A change that nobody waits for (a lab's id, a dropped
row) rides along with the next write, or gets one of its own a few seconds later.
"""

from collections import Counter
from collections.abc import Callable, Collection
from typing import Final

import msgspec
import structlog

from vkprovider.api import names
from vkprovider.api.errors import Conflict, Forbidden, InputError, Invalid, NotFound
from vkprovider.api.objects import ConfigMap
from vkprovider.controllers.context import Context, version_of
from vkprovider.domain import claims
from vkprovider.domain.backoff import delay_s
from vkprovider.domain.claims import Claim
from vkprovider.kube.client import Guard

_log: Final = structlog.get_logger(__name__)

LAZY_S: Final = 5.0
"""How long a change that nobody waits for may wait for company."""

_decoder: Final = msgspec.json.Decoder(ConfigMap)


class ClaimStore:
    """The claims of one worker.

    Attributes:
        claims: By Pod UID; read only, change it with `put` and `drop`.
        digests: How many of them run which content.
        loaded: Whether they have been read; nothing may be imported before.
        fault: Why they cannot be written, in a way that will not heal by itself; no lablet may begin then.
    """

    def __init__(
        self,
        ctx: Context,
        worker: str,
        uid: str,
        *,
        guard: Guard,
        flush_in: Callable[[float], None],
        saved: Callable[[Collection[str]], None],
    ) -> None:
        """Describe the store; nothing is read before `load`.

        Args:
            ctx: The replica.
            worker: The CMLWorker's name.
            uid: Its UID; the ConfigMap goes away with it.
            guard: Called right before every write.
            flush_in: Asks for `flush` to be called after so many seconds.
            saved: Called with the Pod UIDs whose rows were written and that did not put them lazily.
        """
        self._ctx = ctx
        self._worker = worker
        self._uid = uid
        self._guard = guard
        self._flush_in = flush_in
        self._on_saved = saved
        self._path = f"/api/v1/namespaces/{ctx.namespace}/configmaps"
        self._version: str | None = None
        self._dirty: dict[str, int] = {}
        self._generation = 0
        self._next_write_at = 0.0
        self._failures = 0
        self._awaited: set[str] = set()
        self.claims: dict[str, Claim] = {}
        self.digests: Counter[str] = Counter()
        self.loaded = False
        self.fault: InputError | None = None

    async def load(self) -> None:
        """Read the claims.

        Raises:
            InputError: `ClaimStoreInvalid`.
        """
        try:
            raw = await self._ctx.kube.get(f"{self._path}/{names.claims_name(self._worker)}")
        except NotFound:
            self.claims, self._version = {}, None
        else:
            config_map = _decoder.decode(raw)
            self.claims = claims.read(config_map, worker=self._worker, installation=self._ctx.installation)
            self._version = config_map.metadata.resource_version
        self._dirty.clear()
        self.digests = Counter(claim.digest for claim in self.claims.values())
        self.loaded = True

    def put(self, claim: Claim, *, lazy: bool = False) -> None:
        """Write a row, soon, or with the next one if nobody waits for it."""
        old = self.claims.get(claim.pod_uid)
        if old == claim:
            return
        if old is None:
            self.digests[claim.digest] += 1
        if not lazy:
            self._awaited.add(claim.pod_uid)
        self.claims[claim.pod_uid] = claim
        self._touch(claim.pod_uid, lazy=lazy)

    def drop(self, pod_uid: str) -> None:
        """Drop a row, lazily: a row that stays a little longer holds ports, but never a lab."""
        old = self.claims.pop(pod_uid, None)
        if old is not None:
            self.digests[old.digest] -= 1
            self._touch(pod_uid, lazy=True)

    def saved(self, pod_uid: str) -> bool:
        """Tell whether the API server has this row as it is here."""
        return pod_uid not in self._dirty

    def _touch(self, pod_uid: str, *, lazy: bool) -> None:
        self._generation += 1
        self._dirty[pod_uid] = self._generation
        self._flush_in(LAZY_S if lazy else max(0.0, self._next_write_at - self._ctx.now()))

    async def flush(self, *, hurry: bool = False) -> float | None:
        """Write what has changed; returns after how many seconds to come back, None if all is written.

        Args:
            hurry: Do not wait for company: there will be none.

        Raises:
            InputError: `ClaimStoreFull`.
            Fenced: The node is not ours any more.
            OutsideError: The write failed; the changes wait for the next flush.
        """
        if not self._dirty or not self.loaded:
            return None
        left = self._next_write_at - self._ctx.now()
        if left > 0 and not hurry:
            return left
        try:
            return await self._write_all()
        except (InputError, Forbidden, Invalid) as error:
            refused = f"the API server refuses the claims: {error.message}"
            self.fault = error if isinstance(error, InputError) else InputError("ClaimsRefused", refused)
            self._failures += 1
            tuning = self._ctx.tuning
            pause_s = delay_s(self._failures, first_s=tuning.retry_first_s, cap_s=tuning.retry_cap_s)
            self._next_write_at = self._ctx.now() + pause_s
            raise

    async def _write_all(self) -> float | None:
        generation = self._generation
        data, binary = claims.write(self.claims, worker=self._worker, installation=self._ctx.installation)
        self._next_write_at = self._ctx.now() + claims.pause_s(len(self.claims))
        try:
            self._version = await self._write(data, binary)
        except NotFound:  # somebody deleted it: what is known here is written anew
            self._version = None
            return 0.0
        except Conflict:
            await self._merge()
            return 0.0
        self._ctx.counters.claim_writes += 1
        self._failures, self.fault = 0, None
        done = [uid for uid, changed in self._dirty.items() if changed <= generation]
        for uid in done:
            del self._dirty[uid]
        if awaited := self._awaited.intersection(done):
            self._awaited -= awaited
            self._on_saved(awaited)
        return LAZY_S if self._dirty else None

    async def _write(self, data: dict[str, str], binary: dict[str, str]) -> str:
        name = names.claims_name(self._worker)
        metadata: dict[str, object] = {
            "name": name,
            "namespace": self._ctx.namespace,
            "labels": {names.LABEL_MANAGED_BY: names.MANAGER, names.LABEL_COMPONENT: names.COMPONENT_CLAIMS},
            "annotations": {names.ANNOTATION_INSTALLATION: self._ctx.installation},
            "ownerReferences": [
                {"apiVersion": names.API_VERSION, "kind": "CMLWorker", "name": self._worker, "uid": self._uid}
            ],
        }
        body: dict[str, object] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        body |= {"data": data} if data else {"binaryData": binary}
        kube = self._ctx.kube
        if self._version is None:
            answer = await kube.create(self._path, msgspec.json.encode(body), guard=self._guard, urgent=True)
        else:
            metadata["resourceVersion"] = self._version
            answer = await kube.replace(
                f"{self._path}/{name}", msgspec.json.encode(body), guard=self._guard, urgent=True
            )
        return version_of(answer)

    async def _merge(self) -> None:
        """Somebody else wrote: add the rows that we do not know. Ours stay, because they are our side effects."""
        _log.warning("claims were written by somebody else", worker=self._worker)
        ours, dirty = self.claims, dict(self._dirty)
        await self.load()
        theirs = {uid: claim for uid, claim in self.claims.items() if uid not in ours and uid not in dirty}
        self.claims = ours | theirs
        self.digests = Counter(claim.digest for claim in self.claims.values())
        self._dirty = dirty
