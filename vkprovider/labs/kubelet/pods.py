"""`/pods`, `/runningpods`, `/healthz`, `/configz`: what a Node has, for operators and their tools."""

from typing import Any, Final

import msgspec
from aiohttp import web

from vkprovider.labs.kubelet.server import Call, Pods, Routes
from vkprovider.labs.settings.kubelet import KubeletSettings
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.objects import Pod

_JSON: Final = "application/json"


def routes(kube: KubeClient, pods: Pods, settings: KubeletSettings) -> Routes:
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
