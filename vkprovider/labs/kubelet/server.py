"""The application behind all listeners: who may, what answers, and the small paths."""

from collections import Counter as Tally
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final

import msgspec
import structlog
from aiohttp import web

from vkprovider.labs.kubelet.callers import Callers
from vkprovider.labs.kubelet.listeners import MOVED, NodeListener
from vkprovider.labs.kubelet.spi import Target
from vkprovider.labs.settings.cluster import KubeletSettings
from vkprovider.platform.errors import InputError, Invalid, NotFound, OutsideError
from vkprovider.platform.http.answers import Refused
from vkprovider.platform.http.connections import listener_of
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.objects import Pod
from vkprovider.platform.rights import User

_log: Final = structlog.get_logger(__name__)

Handler = Callable[[web.Request, "Call"], Awaitable[web.StreamResponse]]


class Call(msgspec.Struct, frozen=True):
    """What is known of a request: where it came to, who sends it, and when (seconds since the epoch)."""

    listener: NodeListener
    user: User
    at: float


Routes = Mapping[tuple[str, str], Handler]
"""Handlers by method and path."""


def application(callers: Callers, routes: Routes, counts: Tally[tuple[str, str]]) -> web.Application:
    """Return the application.

    Args:
        callers: Admit senders, to whatever path: nobody else learns which paths there are.
        routes: What there is.
        counts: Answers by path, without names, and status.
    """

    @web.middleware
    async def guard(request: web.Request, handler: Any) -> web.StreamResponse:
        path = "/" + request.path.lstrip("/").partition("/")[0]
        try:
            answer = await _answer(request, handler, callers)
        except web.HTTPException as error:
            counts[path if error.status not in _HIDDEN else "other", str(error.status)] += 1
            raise
        counts[path if answer.status not in _HIDDEN else "other", str(answer.status)] += 1
        return answer

    app = web.Application(middlewares=[guard], client_max_size=0)
    for (method, path), handle in routes.items():
        app.router.add_route(method, path, _bound(handle))
    return app


_HIDDEN: Final = {401, 404, 405}
"""Statuses of requests whose path may be anything."""
_CALL: Final = web.RequestKey("call", Call)


def _bound(handle: Handler) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def bound(request: web.Request) -> web.StreamResponse:
        return await handle(request, request[_CALL])

    return bound


async def _answer(request: web.Request, handler: Any, callers: Callers) -> web.StreamResponse:
    """Answer a request.

    Raises:
        web.HTTPException: It is refused.
    """
    listener = listener_of(request)
    if not isinstance(listener, NodeListener) or listener.left:
        raise failure(MOVED)
    try:
        request[_CALL] = Call(listener, await callers.admit(request, listener.node), callers.wall())
        answer: web.StreamResponse = await handler(request)
    except Refused as refusal:
        raise _refusal(refusal) from None
    except InputError as error:
        raise web.HTTPBadRequest(text=f"{error.reason}: {error.message}\n") from None
    except Invalid as error:
        raise web.HTTPBadRequest(text=f"{error.message}\n") from None
    except NotFound as error:
        raise web.HTTPNotFound(text=f"{error.message}\n") from None
    except OutsideError as error:
        raise failure(error.message) from None
    return answer


def failure(text: str) -> web.HTTPException:
    """Return an answer that tells a user why something cannot be done now.

    As a kubelet's, it is a 500: of the refusals of a log, the API server passes on the text of that and of a 400 alone
    (`GenericHttpResponseChecker` of `k8s.io/apiserver/pkg/registry/generic/rest`).
    """
    return web.HTTPInternalServerError(text=f"{text}\n")


def _refusal(refusal: Refused) -> web.HTTPException:
    """Return a refusal of the access control in a kubelet's words."""
    if refusal.status == web.HTTPUnauthorized.status_code:
        return web.HTTPUnauthorized(text="Unauthorized\n", headers={"WWW-Authenticate": 'Bearer realm="kubelet"'})
    return refusal


class NodePods:
    """The Pods of a Node, and the containers in them."""

    def __init__(self, pods: Mapping[str, Pod], on: Callable[[str], Iterable[Pod]]) -> None:
        """Create it.

        Args:
            pods: By `namespace/name`.
            on: Lists those on a worker.
        """
        self._pods = pods
        self._on = on

    def of(self, listener: NodeListener) -> Iterable[Pod]:
        """List the Pods of a Node."""
        return self._on(listener.worker)

    def find(self, request: web.Request, call: Call) -> Pod:
        """Return the Pod that a request names.

        Raises:
            web.HTTPException: 404: the Node has no such Pod.
        """
        namespace, name = request.match_info["namespace"], request.match_info["pod"]
        pod = self._pods.get(f"{namespace}/{name}")
        if pod is None or pod.spec.node_name != call.listener.node:
            raise web.HTTPNotFound(text=f'pod "{name}" not found in namespace "{namespace}" on {call.listener.node}\n')
        return pod

    def target(self, request: web.Request, call: Call) -> tuple[Pod, Target]:
        """Return the Pod and the container that a request names.

        Raises:
            web.HTTPException: 404: there is no such Pod, or no such container in it.
        """
        pod, container = self.find(request, call), request.match_info["container"]
        if container not in {c.name for c in pod.spec.containers}:
            raise web.HTTPNotFound(text=f'container "{container}" not found in pod "{pod.metadata.name}"\n')
        return pod, Target(pod.metadata.namespace, pod.metadata.name, pod.metadata.uid, container)


_JSON: Final = "application/json"


def routes(kube: KubeClient, pods: NodePods, settings: KubeletSettings) -> Routes:
    """Return the handlers."""

    async def every(_: web.Request, call: Call) -> web.Response:
        """Answer with whole Pods, as the API server has them: a replica keeps only what it needs of one."""
        query = {"fieldSelector": f"spec.nodeName={call.listener.node}"}
        return web.Response(body=await kube.get("/api/v1/pods", query), content_type=_JSON)

    async def running(_: web.Request, call: Call) -> web.Response:
        found = [_brief(pod) for pod in pods.of(call.listener) if pod.status.phase == "Running"]
        body = {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": found}
        return web.Response(body=msgspec.json.encode(body), content_type=_JSON)

    async def health(_: web.Request, __: Call) -> web.Response:
        return web.Response(text="ok")

    async def config(_: web.Request, __: Call) -> web.Response:
        first, last = settings.port_range
        shown = {
            "kind": "KubeletConfiguration",
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True}, "x509": {}},
            "authorization": {"mode": "Webhook"},
            "serverTLSBootstrap": settings.certificate == "csr",
            "vkprovider": {"ports": [first, last], "sessionsMax": settings.sessions_max},
        }
        return web.Response(body=msgspec.json.encode({"kubeletconfig": shown}), content_type=_JSON)

    return {
        ("GET", "/pods"): every,
        ("GET", "/pods/"): every,
        ("GET", "/runningpods"): running,
        ("GET", "/runningpods/"): running,
        ("GET", "/healthz"): health,
        ("GET", "/healthz/{check:ping|log|syncloop}"): health,
        ("GET", "/configz"): config,
    }


def _brief(pod: Pod) -> dict[str, Any]:
    meta, status = pod.metadata, pod.status
    return {
        "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
        "spec": {"containers": [{"name": c.name, "image": c.image, "resources": {}} for c in pod.spec.containers]},
        "status": {"phase": status.phase, "podIP": status.pod_ip},
    }
