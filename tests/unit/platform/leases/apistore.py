"""The API server of virtual worlds: objects with resourceVersion and UID, and the history that watches read."""

import itertools
from collections.abc import Callable
from typing import Any, Final

import msgspec

from tests.support.virtualtime import now_s
from vkprovider.platform import wellknown
from vkprovider.platform.errors import Conflict, from_status

RECORDS: Final = "/api/v1/namespaces/home/configmaps"
NODE_LEASES: Final = f"/apis/coordination.k8s.io/v1/namespaces/{wellknown.NODE_LEASE_NAMESPACE}/leases"
MEMBERS: Final = "/apis/coordination.k8s.io/v1/namespaces/home/leases"


class Server:
    """The API server: objects by path, optimistic concurrency, and the history that watches read.

    Attributes:
        version: The resourceVersion of the last write.
        history: The lines of watches with their resourceVersions, by collection.
        news: Called with every new line, by collection.
        records: Every accepted write of a record: when, the worker, the epoch and process of the writer.
        refused: How many writes of records a precondition refused.
    """

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.history: dict[str, list[tuple[int, bytes]]] = {}
        self.records: list[tuple[float, str, int, str]] = []
        self.refused = 0
        self.news: dict[str, list[Callable[[], None]]] = {}
        self.version = 0
        self._uids = itertools.count(1)

    def answer(self, method: str, path: str, body: bytes | None) -> bytes:
        """Carry out one request.

        Raises:
            OutsideError: As the API server refuses it.
        """
        sent = msgspec.json.decode(body) if body else {}
        try:
            match method:
                case "GET":
                    return self._get(path)
                case "POST":
                    return self._put(f"{path}/{sent['metadata']['name']}", None, sent)
                case "PUT":
                    return self._put(path, self.objects.get(path), sent)
                case _:
                    return self._delete(path, sent.get("preconditions", {}))
        except Conflict:
            self.refused += path.startswith(RECORDS)
            raise

    def _get(self, path: str) -> bytes:
        if path in self.objects:
            return msgspec.json.encode(self.objects[path])
        if path.rpartition("/")[2] != "leases":
            raise from_status(404, f"{path} not found")
        items = [found for name, found in self.objects.items() if name.rpartition("/")[0] == path]
        return msgspec.json.encode({"metadata": {"resourceVersion": str(self.version)}, "items": items})

    def _put(self, path: str, old: dict[str, Any] | None, new: dict[str, Any]) -> bytes:
        metadata, was = new["metadata"], old["metadata"] if old is not None else {}
        replaces = "resourceVersion" in metadata
        if not replaces and path in self.objects:
            raise from_status(409, f"{path} already exists")
        if replaces and old is None and "uid" not in metadata:  # as kube-apiserver does for Leases
            replaces = "/leases/" not in path
        if replaces and old is None:
            raise from_status(409 if "/leases/" in path else 404, f"{path} is gone")
        if replaces and any(metadata[key] != was.get(key) for key in ("resourceVersion", "uid") if key in metadata):
            raise from_status(409, f"{path} has been modified")
        uid = was.get("uid") or f"uid-{next(self._uids)}"
        namespace = path.split("/")[-3]
        metadata |= {"resourceVersion": self._next_version(), "uid": uid, "namespace": namespace}
        self.objects[path] = new
        if path.startswith(RECORDS):
            data = new["data"]
            self.records.append((now_s(), metadata["name"], int(data["epoch"]), data["process"]))
        self._tell("ADDED" if old is None else "MODIFIED", path, new)
        return msgspec.json.encode(new)

    def _delete(self, path: str, held: dict[str, str]) -> bytes:
        if (found := self.objects.get(path)) is None:
            raise from_status(404, f"{path} not found")
        if any(found["metadata"][key] != value for key, value in held.items()):
            raise from_status(409, f"{path} has been modified")
        del self.objects[path]
        found["metadata"]["resourceVersion"] = self._next_version()
        self._tell("DELETED", path, found)
        return b"{}"

    def _next_version(self) -> str:
        self.version += 1
        return str(self.version)

    def _tell(self, kind: str, path: str, found: dict[str, Any]) -> None:
        collection = path.rpartition("/")[0]
        line = msgspec.json.encode({"type": kind, "object": found})
        self.history.setdefault(collection, []).append((self.version, line))
        for tell in self.news.get(collection, ()):
            tell()
