"""A real API server without controllers: etcd and kube-apiserver of the sandbox, once per run of pytest.

Nothing places Pods, collects owned objects or removes namespaces: a test sets `spec.nodeName` itself, and `wipe`
deletes what a test and the code under test made.
"""

import asyncio
import io
import json
import ssl
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Self, TypeVar
from urllib.parse import quote

import aiohttp

from vkprovider.platform.shipped import find_manifests
from vkpsandbox import Sandbox
from vkpsandbox.controlplane import content
from vkpsandbox.controlplane.kubeconfig import read_cluster, write_kubeconfig
from vkpsandbox.controlplane.kubectl import Kubectl

T = TypeVar("T")

SYSTEM: Final = content.NAMESPACE
GROUP: Final = "/apis/vkprovider.io/v1alpha1"
NODES: Final = "/api/v1/nodes"
NODE_LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
MEMBERS: Final = f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM}/leases"
CONFIG_MAPS: Final = f"/api/v1/namespaces/{SYSTEM}/configmaps"
LOGINS: Final = content.LOGINS
SECRETS: Final = f"/api/v1/namespaces/{LOGINS}/secrets"
ENDPOINT_SLICES: Final = f"/apis/discovery.k8s.io/v1/namespaces/{SYSTEM}/endpointslices"
RUNTIME_CLASSES: Final = "/apis/node.k8s.io/v1/runtimeclasses"
_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_OURS: Final = "?labelSelector=" + quote("vkprovider.io/component", safe="")
_LARGE_BYTES: Final = 2**20
"""A body from which aiohttp asks for a file instead of bytes."""
_PATIENCE_S: Final = 60.0
"""How long a condition may take. No test is about speed, and the machine may be busy."""


class Refused(Exception):  # noqa: N818 (reads well in `pytest.raises`)
    """The API server refused a request of the test."""

    def __init__(self, status: int, answer: dict[str, Any]) -> None:
        super().__init__(f"{status} {answer.get('reason')}: {answer.get('message')}")
        self.status = status


class ApiServer:
    """The processes, and how to reach them."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self.url = sandbox.process("kube-apiserver").url
        self.kubeconfig = sandbox.kubeconfig
        self._tokens: dict[tuple[str, ...], str] = {}

    @property
    def pki(self) -> Path:
        """Keys and certificates of the control plane."""
        return self._sandbox.layout.pki

    @property
    def programs(self) -> Path:
        """Where kubectl of the control plane's own version is."""
        return self._sandbox.programs

    @property
    def audit_log(self) -> Path:
        """The audit log, JSON lines, of one that writes it."""
        return self._sandbox.layout.audit_log

    def kubectl(self, *arguments: str) -> str:
        """Run kubectl as an administrator and return what it prints."""
        return self._sandbox.kubectl(*arguments).stdout

    def admin_tls(self) -> ssl.SSLContext:
        """Return the TLS settings of a client that may do everything."""
        context = self.client_tls()
        context.load_cert_chain(str(self.pki / "admin.crt"), str(self.pki / "admin.key"))
        return context

    def client_tls(self) -> ssl.SSLContext:
        """Return the TLS settings of a client without a certificate."""
        return ssl.create_default_context(cafile=str(self.pki / "server-ca.crt"))

    def provider_token(self) -> str:
        """Return a token of the provider's ServiceAccount."""
        return self.token(content.SERVICE_ACCOUNT)

    def token(self, account: str, *more: str) -> str:
        """Return a token of a ServiceAccount of the provider's namespace, made with further words of kubectl."""
        words = (account, f"--namespace={SYSTEM}", "--duration=24h", *more)
        if words not in self._tokens:
            self._tokens[words] = self._sandbox.kubectl("create", "token", *words).stdout.strip()
        return self._tokens[words]

    def write_provider_kubeconfig(self, path: Path, server: str = "", account: str = content.SERVICE_ACCOUNT) -> str:
        """Write a kubeconfig with a token of the provider's ServiceAccount, or of another; return its path.

        Args:
            path: The file.
            server: URL to dial instead of the API server's own.
            account: A ServiceAccount of the provider's namespace.
        """
        cluster = {"server": server} if server else read_cluster(self.kubeconfig)
        write_kubeconfig(path, name="provider", cluster=cluster, user={"token": self.token(account)})
        return str(path)


@contextmanager
def running(directory: Path, *arguments: str, audit: bool = False) -> Iterator[ApiServer]:
    """Start etcd and kube-apiserver, apply CRDs, RBAC and policies; end both with the block or with this process.

    Args:
        directory: Of their files.
        arguments: Further ones of kube-apiserver.
        audit: Whether it writes an audit log.
    """
    without: dict[str, Any] = {"workers": 0, "provider": False, "controllers": False, "tied": True, "audit": audit}
    with Sandbox.up("component", directory=directory, component_args={"kube-apiserver": arguments}, **without) as made:
        kubectl = Kubectl(made.programs / "kubectl", made.layout)
        manifests = find_manifests()
        content.apply_manifests(kubectl, manifests)
        kubectl("apply", "--server-side", "-k", str(manifests / "policies"))
        yield ApiServer(made)


class Admin:
    """The API server as an administrator uses it: JSON in, JSON out."""

    def __init__(self, server: ApiServer) -> None:
        self._url = server.url
        self._http = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=server.admin_tls()))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.close()

    async def request(
        self, method: str, path: str, body: object = None, content_type: str = "application/json", *, user: str = ""
    ) -> dict[str, Any]:
        """Send one request, as an administrator of another name if `user` says so, and return the decoded answer.

        Raises:
            Refused: By the API server.
        """
        payload = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": content_type} if payload is not None else {}
        if user:
            headers |= {"Impersonate-User": user, "Impersonate-Group": "system:masters"}
        data = io.BytesIO(payload) if payload is not None and len(payload) > _LARGE_BYTES else payload
        async with self._http.request(method, self._url + path, data=data, headers=headers) as response:
            text = await response.text()
        answer: dict[str, Any] = json.loads(text) if text.startswith("{") else {"message": text}
        if response.status >= 400:
            raise Refused(response.status, answer)
        return answer

    async def get(self, path: str) -> dict[str, Any] | None:
        """Return an object, None if there is none."""
        try:
            return await self.request("GET", path)
        except Refused as error:
            if error.status != 404:
                raise
            return None

    async def items(self, path: str) -> list[dict[str, Any]]:
        """List a collection; while the API server only begins to store a new kind, wait."""

        async def look() -> dict[str, Any] | None:
            try:
                return await self.request("GET", path)
            except Refused as error:
                if error.status != 429:
                    raise
                return None

        answer = await until(look)
        assert answer is not None
        found: list[dict[str, Any]] = answer["items"]
        return found

    async def create(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Create an object in a collection."""
        return await self.request("POST", path, body)

    async def replace(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Replace an object."""
        return await self.request("PUT", path, body)

    async def patch(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Merge-patch an object."""
        return await self.request("PATCH", path, body, "application/merge-patch+json")

    async def delete(self, path: str, *, grace_s: int | None = None) -> None:
        """Delete an object or a collection; what does not exist is no error."""
        options = None if grace_s is None else {"gracePeriodSeconds": grace_s}
        try:
            await self.request("DELETE", path, options)
        except Refused as error:
            if error.status != 404:
                raise

    async def may(
        self, user: str, verb: str, resource: str, namespace: str, *, group: str = "", groups: Sequence[str] = ()
    ) -> bool:
        """Return whether a user has a right on a resource, or on a subresource such as `pods/log`."""
        kind, _, part = resource.partition("/")
        asked = {"verb": verb, "group": group, "resource": kind, "subresource": part, "namespace": namespace}
        spec = {"user": user, "groups": list(groups), "resourceAttributes": asked}
        return bool((await self.create(_REVIEWS, {"spec": spec}))["status"]["allowed"])

    async def until(self, path: str, good: Callable[[dict[str, Any]], object], what: str = "") -> dict[str, Any]:
        """Wait until an object exists and satisfies a condition; return it."""
        last: dict[str, Any] | None = None

        async def look() -> dict[str, Any] | None:
            nonlocal last
            last = await self.get(path)
            return last if last is not None and good(last) else None

        try:
            found = await until(look)
        except TimeoutError:
            raise AssertionError(f"{path}: {what or 'not as expected'}; last seen {json.dumps(last)}") from None
        assert found is not None
        return found

    async def until_gone(self, path: str) -> None:
        """Wait until an object does not exist."""

        async def look() -> bool:
            return await self.get(path) is None

        try:
            await until(look)
        except TimeoutError:
            raise AssertionError(f"{path} is still there: {json.dumps(await self.get(path))}") from None

    async def wipe(self, *namespaces: str) -> None:
        """Delete what a test and the provider made, finalizers or not."""
        for kind in ("cmlworkers", "labletdefinitions"):
            for item in await self.items(f"{GROUP}/{kind}"):
                if item["metadata"].get("finalizers"):
                    await self.patch(f"{GROUP}/{kind}/{item['metadata']['name']}", {"metadata": {"finalizers": None}})
            await self.delete(f"{GROUP}/{kind}")
        for namespace in namespaces:
            await self.delete(f"/api/v1/namespaces/{namespace}/pods", grace_s=0)
        for node in await self.items(NODES):
            await self.delete(f"{NODES}/{node['metadata']['name']}")
        for collection in (NODE_LEASES, MEMBERS, CONFIG_MAPS, SECRETS, ENDPOINT_SLICES, RUNTIME_CLASSES):
            await self.delete(collection)


async def until(look: Callable[[], Awaitable[T]], within_s: float = _PATIENCE_S, every_s: float = 0.02) -> T:
    """Return the first truthy answer of an asynchronous predicate.

    Raises:
        TimeoutError: If there is none in time.
    """
    async with asyncio.timeout(within_s):
        while True:
            if found := await look():
                return found
            await asyncio.sleep(every_s)
