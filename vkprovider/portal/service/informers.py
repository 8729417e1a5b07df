"""What the portal follows.

Its own Namespaces and Pods, the Pods' Events, other lablets, the RoleBindings of instructors, what a menu is made of.
"""

from dataclasses import dataclass
from typing import Any, Final

import msgspec

from vkprovider.lablet import names
from vkprovider.platform import wellknown
from vkprovider.platform.kube.informer import ALERT, Head, Informer
from vkprovider.platform.kube.resources import PartialObject
from vkprovider.platform.objects import CustomResource, Event, Node, Pod, RoleBinding, RuntimeClass
from vkprovider.platform.runtime.context import Context
from vkprovider.portal.pure import portalnames
from vkprovider.portal.pure.instructors import CLASS_ROLE, LAB_ROLE
from vkprovider.portal.service.lablets import lablet_informer

_BINDINGS: Final = "/apis/rbac.authorization.k8s.io/v1/rolebindings"


@dataclass(frozen=True, slots=True)
class PortalInformers:
    """What is followed."""

    namespaces: Informer[PartialObject]
    pods: Informer[Pod]
    events: Informer[Event]
    definitions: Informer[CustomResource]
    runtime_classes: Informer[RuntimeClass]
    nodes: Informer[Node]
    lablets: Informer[Pod]
    bindings: Informer[RoleBinding]

    def age_s(self) -> float:
        """Return how old what is known of labs and lablets may be, if more than the pause of a watch; else 0."""
        return max(each.stale_s for each in (self.namespaces, self.pods, self.events, self.lablets))

    def are_complete(self) -> bool:
        """Return whether each has been listed."""
        return all(each.synced.is_set() for each in self.all())

    def all(self) -> tuple[Informer[Any], ...]:
        """Return all of them."""
        ours = self.namespaces, self.pods, self.events, self.bindings
        return *ours, self.definitions, self.runtime_classes, self.nodes, self.lablets


def informers(ctx: Context, prefix: str) -> PortalInformers:
    """Describe what is followed; nothing is read before the informers run.

    Args:
        ctx: The replica; its namespace is the mark.
        prefix: What the names of namespaces of user labs begin with.
    """
    mark = f"{portalnames.LABEL_PORTAL}={ctx.namespace}"

    def keep(head: Head) -> bool:
        return head.metadata.namespace.startswith(f"{prefix}-")

    return PortalInformers(
        namespaces=Informer(
            ctx.kube,
            ctx.api.namespaces.path,
            PartialObject,
            name="namespaces",
            label_selector=mark,
            slim=slim,
            patience=ALERT,
        ),
        pods=Informer(ctx.kube, ctx.api.pods.path, Pod, name="pods", label_selector=mark, patience=ALERT),
        events=Informer(
            ctx.kube,
            "/api/v1/events",
            Event,
            name="events",
            field_selector="involvedObject.kind=Pod",
            keep=keep,
            patience=ALERT,
        ),
        definitions=Informer(
            ctx.kube, ctx.api.definitions.path, CustomResource, name="labletdefinitions", patience=ALERT
        ),
        runtime_classes=Informer(
            ctx.kube,
            ctx.api.runtime_classes.path,
            RuntimeClass,
            name="runtimeclasses",
            label_selector=f"{names.LABEL_COMPONENT}={names.COMPONENT_RUNTIME_CLASS}",
            patience=ALERT,
        ),
        nodes=Informer(
            ctx.kube,
            ctx.api.nodes.path,
            Node,
            name="nodes",
            label_selector=f"{names.LABEL_COMPONENT}={names.COMPONENT_VNODE}",
            patience=ALERT,
        ),
        lablets=lablet_informer(ctx),
        bindings=Informer(
            ctx.kube,
            _BINDINGS,
            RoleBinding,
            name="rolebindings",
            keep=_instructs,
            patience=ALERT,
        ),
    )


def _instructs(head: Head) -> bool:
    return head.role_ref.name in {CLASS_ROLE, LAB_ROLE}


def slim(each: PartialObject) -> PartialObject:
    """Return a Namespace with what is ours of its metadata: other programs may have written more than all of that."""
    meta = each.metadata
    ours = f"{wellknown.GROUP}/"
    kept = msgspec.structs.replace(
        meta,
        labels={key: text for key, text in meta.labels.items() if key.startswith(ours)},
        annotations={key: text for key, text in meta.annotations.items() if key.startswith(ours)},
    )
    return PartialObject(kept)
