"""What the portal follows, and of the Pods those that are no user labs, such as the lablets of a class.

Its own Namespaces and Pods, the Pods' Events, other lablets, the RoleBindings of instructors and of learners, what a
menu is made of.

The label of user labs alone makes no user lab of a Pod: anybody may write it on one. Those that have it and stand in a
namespace that is none of a user lab are with the others here; another informer brings them.

The watch brings every other Pod of the cluster, for no selector of the API server knows a RuntimeClass. Of those that
are no lablets only the head is decoded, and nothing is kept; of lablets only what a view can show.
"""

import asyncio
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import msgspec

from vkprovider.lablet import names
from vkprovider.lablet.slimming import slim_pod
from vkprovider.platform import wellknown
from vkprovider.platform.kube.informer import ALERT, Head, Informer
from vkprovider.platform.kube.resources import PartialObject
from vkprovider.platform.objects import (
    Condition,
    Container,
    CustomResource,
    Event,
    Node,
    Pod,
    RoleBinding,
    RuntimeClass,
)
from vkprovider.platform.runtime.context import Context
from vkprovider.portal.pure import portalnames
from vkprovider.portal.pure.given import is_of, learner_name, people_of
from vkprovider.portal.pure.leading import CLASS_ROLE, LAB_ROLE
from vkprovider.portal.pure.nodeimages import keeping_images
from vkprovider.portal.service.index import Listeners

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
    ordinary: Informer[Node] | None = None

    def age_s(self) -> float:
        """Return how old what is known of labs and lablets may be, if more than the pause of a watch; else 0.

        Events do not count: where none happens, the API server says a word of them at the end of a watch alone.
        """
        return max(each.stale_s for each in (self.namespaces, self.pods, self.lablets))

    def are_complete(self) -> bool:
        """Return whether each has been listed."""
        return all(each.synced.is_set() for each in self.all())

    def all(self) -> tuple[Informer[Any], ...]:
        """Return all of them."""
        ours = self.namespaces, self.pods, self.events, self.bindings
        beside = (self.ordinary,) if self.ordinary is not None else ()
        return *ours, self.definitions, self.runtime_classes, self.nodes, self.lablets, *beside


def informers(ctx: Context, prefix: str, images: Collection[str] = ()) -> PortalInformers:
    """Describe what is followed; nothing is read before the informers run.

    Args:
        ctx: The replica; its namespace is the mark.
        prefix: What the names of namespaces of user labs begin with.
        images: Those of workbenches; without any, Nodes of others are not followed.
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
        bindings=Informer(ctx.kube, _BINDINGS, RoleBinding, name="rolebindings", keep=_is_of_people, patience=ALERT),
        ordinary=_ordinary(ctx, images) if images else None,
    )


def _ordinary(ctx: Context, images: Collection[str]) -> Informer[Node]:
    """Describe how Nodes that are of no worker are followed, with what they hold of some images."""
    return Informer(
        ctx.kube,
        ctx.api.nodes.path,
        Node,
        name="ordinarynodes",
        label_selector=f"{names.LABEL_COMPONENT}!={names.COMPONENT_VNODE}",
        slim=keeping_images(images),
        patience=ALERT,
    )


def _is_of_people(head: Head) -> bool:
    """Return whether a RoleBinding is of instructors, or of learners."""
    role = head.role_ref.name
    return role in {CLASS_ROLE, LAB_ROLE, names.ROLE_CLASS_LEARNER} or role.startswith(names.assignment_name(""))


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


_ANY: Final = ""
"""The name under which those listen who want news about all lablets of a namespace."""


def lablet_informer(ctx: Context) -> Informer[Pod]:
    """Describe the informer of lablets that are not user labs of this portal; nothing is read before it runs."""
    return Informer(
        ctx.kube,
        ctx.api.pods.path,
        Pod,
        name="lablets",
        label_selector=f"{portalnames.LABEL_PORTAL}!={ctx.namespace}",
        keep=keep,
        slim=slim_lablet,
        patience=ALERT,
    )


def keep(head: Head) -> bool:
    """Return whether a Pod is a lablet."""
    return names.is_lablet(head.spec.runtime_class_name, head.spec.node_name, head.spec.node_selector)


def slim_lablet(pod: Pod) -> Pod:
    """Return the part of a lablet that views can show; texts that many Pods have are one object."""
    pod = slim_pod(pod)
    meta, spec, status = pod.metadata, pod.spec, pod.status
    return Pod(
        msgspec.structs.replace(meta, namespace=sys.intern(meta.namespace), finalizers=[]),
        msgspec.structs.replace(
            spec,
            containers=_shared(tuple(spec.containers)),
            init_containers=[],
            node_name=sys.intern(spec.node_name),
            runtime_class_name=sys.intern(spec.runtime_class_name),
            overhead={},
        ),
        msgspec.structs.replace(status, conditions=[_slim_condition(each) for each in status.conditions]),
    )


def _slim_condition(each: Condition) -> Condition:
    return msgspec.structs.replace(each, type=sys.intern(each.type), status=sys.intern(each.status))


@lru_cache(maxsize=256)
def _shared(containers: tuple[Container, ...]) -> list[Container]:
    """Return one list for all lablets that have the same containers, as those of one definition have."""
    return list(containers)


class OtherLablets:
    """Lablets that are not user labs, by namespace, kept up to date by informers: to look here costs no request."""

    def __init__(self, strays: Callable[[str], Mapping[str, Pod]], places: Callable[[], Iterable[str]]) -> None:
        """Know nothing.

        Args:
            strays: Returns the lablets of a namespace, by name, that have the label of user labs and are none.
            places: Returns the namespaces that have such.
        """
        self._strays = strays
        self._places = places
        self._pods: dict[str, dict[str, Pod]] = {}
        self._given: dict[str, dict[tuple[str, str], Pod]] = {}
        self._listeners: Listeners[tuple[str, str]] = Listeners()
        self._learners: Listeners[str] = Listeners()

    def __len__(self) -> int:
        """Count the lablets."""
        return sum(map(len, self._pods.values()))

    def of(self, namespace: str) -> list[Pod]:
        """Return the lablets of a namespace, by name."""
        its = self._all(namespace)
        return [its[name] for name in sorted(its)]

    def pod(self, namespace: str, name: str) -> Pod | None:
        """Return a lablet; None if there is none of that name."""
        found = self._pods.get(namespace, {}).get(name)
        return found if found is not None else self._all(namespace).get(name)

    def of_learner(self, learner: str) -> list[Pod]:
        """Return the lablets that name a learner."""
        strays = (pod for place in self._places() for pod in self._strays(place).values() if is_of(pod, [learner]))
        return [*self._given.get(learner, {}).values(), *strays]

    def namespaces(self) -> list[str]:
        """Return the namespaces in which there are lablets, by name."""
        return sorted({*self._pods, *self._places()})

    def listen(self, namespace: str, name: str = _ANY) -> AbstractAsyncContextManager[asyncio.Event]:
        """Yield an event that is set whenever a lablet has changed, or any of a namespace; the caller clears it."""
        return self._listeners.listen((namespace, name))

    def listen_to(self, place: str) -> AbstractAsyncContextManager[asyncio.Event]:
        """Listen to a lablet by `NAMESPACE/POD`, as `listen`."""
        namespace, _, name = place.partition("/")
        return self.listen(namespace, name)

    def listen_learner(self, learner: str) -> AbstractAsyncContextManager[asyncio.Event]:
        """Yield an event that is set whenever a lablet has changed that names somebody, or did; as `listen`."""
        return self._learners.listen(learner)

    @property
    def listeners_total(self) -> int:
        """How many listen."""
        return len(self._listeners) + len(self._learners)

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """Note a lablet without the label."""
        meta = (new or old).metadata  # type: ignore[union-attr]  # (one of them is there)
        self._note_learner(old, new)
        if new is not None:
            self._pods.setdefault(meta.namespace, {})[meta.name] = new
        else:
            its = self._pods.get(meta.namespace, {})
            its.pop(meta.name, None)
            if not its:
                self._pods.pop(meta.namespace, None)
        self._tell(meta.namespace, meta.name)

    def stray_changed(self, old: Pod | None, new: Pod | None) -> None:
        """Tell who listens of a Pod with the label; those of user labs have no listener here."""
        meta = (new or old).metadata  # type: ignore[union-attr]  # (as above)
        self._tell(meta.namespace, meta.name)
        self._tell_learners(old, new)

    def _note_learner(self, old: Pod | None, new: Pod | None) -> None:
        """Note whose a lablet is, and tell whose it was and is."""
        for pod, is_there in ((old, False), (new, True)):
            learner = learner_name(pod) if pod is not None else ""
            if pod is None or not learner:
                continue
            its, key = self._given.setdefault(learner, {}), (pod.metadata.namespace, pod.metadata.name)
            if is_there:
                its[key] = pod
            else:
                its.pop(key, None)
            if not its:
                del self._given[learner]
        self._tell_learners(old, new)

    def _tell_learners(self, old: Pod | None, new: Pod | None) -> None:
        for learner in set[str]().union(*(people_of(pod) for pod in (old, new) if pod is not None)):
            self._learners.tell(learner)

    def _all(self, namespace: str) -> Mapping[str, Pod]:
        its, strays = self._pods.get(namespace, {}), self._strays(namespace)
        return {**strays, **its} if strays else its

    def _tell(self, namespace: str, name: str) -> None:
        self._listeners.tell((namespace, _ANY))
        self._listeners.tell((namespace, name))
