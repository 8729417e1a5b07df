"""The collections of the API server that more than one controller reads; each other one is beside its controller.

`cmlworkers`, `labletdefinitions`, `pods` on our Nodes, `content` ConfigMaps, `runtimeclasses`, and
that the ConfigMaps of claims exist; `slices` of exposed lablets.
"""

from dataclasses import dataclass
from typing import Final

from vkprovider.lablet import exposure, names
from vkprovider.lablet.slimming import WholePod, slim_pod
from vkprovider.platform import wellknown
from vkprovider.platform.kube.informer import ALERT, Informer
from vkprovider.platform.kube.resources import PartialObject
from vkprovider.platform.objects import ConfigMap, CustomResource, EndpointSlice, Pod, RuntimeClass
from vkprovider.platform.runtime.context import Context

_LARGE_PAGE: Final = 10
"""Objects of up to 1 MiB in a page."""
_GROUP: Final = f"/apis/{wellknown.API_VERSION}"


@dataclass(frozen=True, slots=True)
class Informers:
    """Informers that more than one controller reads."""

    workers: Informer[CustomResource]
    definitions: Informer[CustomResource]
    pods: Informer[Pod]
    content: Informer[ConfigMap]
    runtime_classes: Informer[RuntimeClass]
    claims: Informer[PartialObject]
    slices: Informer[EndpointSlice]


def informers(ctx: Context) -> Informers:
    """Describe what is followed; nothing is read before the informers run."""
    kube = ctx.kube
    return Informers(
        workers=Informer(kube, f"{_GROUP}/cmlworkers", CustomResource, name="cmlworkers"),
        definitions=Informer(kube, f"{_GROUP}/labletdefinitions", CustomResource, name="labletdefinitions"),
        pods=Informer(
            kube,
            "/api/v1/pods",
            WholePod,
            name="pods",
            field_selector="spec.nodeName!=",
            keep=lambda head: head.spec.node_name.startswith(names.NODE_PREFIX),
            slim=slim_pod,
            sign=f'"nodeName":"{names.NODE_PREFIX}'.encode(),
            patience=ALERT,  # a learner waits for a Pod
        ),
        content=Informer(
            kube,
            f"/api/v1/namespaces/{ctx.namespace}/configmaps",
            ConfigMap,
            name="content",
            label_selector=f"{names.LABEL_COMPONENT}={names.COMPONENT_CONTENT}",
        ),
        runtime_classes=Informer(
            kube,
            "/apis/node.k8s.io/v1/runtimeclasses",
            RuntimeClass,
            name="runtimeclasses",
            label_selector=f"{names.LABEL_COMPONENT}={names.COMPONENT_RUNTIME_CLASS}",
        ),
        claims=Informer(
            kube,
            f"/api/v1/namespaces/{ctx.namespace}/configmaps",
            PartialObject,
            name="claims",
            label_selector=f"{names.LABEL_COMPONENT}={names.COMPONENT_CLAIMS}",
            brief=True,
            page_size=_LARGE_PAGE,
        ),
        slices=Informer(
            kube,
            ctx.api.endpoint_slices.path,
            EndpointSlice,
            name="slices",
            label_selector=exposure.selector(),
        ),
    )
