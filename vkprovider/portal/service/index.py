"""What a replica knows of user labs: to look them up, the line of those that wait, and who waits for news.

`portal.pure.facts` says who waits in line for a start; here it is asked only when a change of a lab can move the line.

A change wakes the reconciler of the lab that it concerns, and everybody who listens to its user or class.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Hashable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, Generic, TypeVar

from vkprovider.lablet import names
from vkprovider.lablet.models.status import DefinitionStatus, definition_status
from vkprovider.platform.kube.events import ObjectRef
from vkprovider.platform.kube.resources import PartialObject
from vkprovider.platform.objects import CustomResource, Event, Pod
from vkprovider.portal.pure.facts import UserLab, UserLabStatus, is_bench, places, precedence, status_of
from vkprovider.portal.pure.portalnames import pod_name
from vkprovider.portal.pure.record import LabRecord, record_of


class WaitingLine:
    """Which labs wait for their start, and how long the line is before each."""

    def __init__(self, starts_max: int) -> None:
        """Begin with nobody in line.

        Args:
            starts_max: Labs that start at once, at most.
        """
        self._starts_max = starts_max
        self._pending: dict[str, UserLab] = {}
        self._ahead: Mapping[str, int] = {}

    def put(self, namespace: str, lab: UserLab | None) -> list[str]:
        """Note a lab, None if there is none; return the namespaces of those whose place has changed."""
        if lab is not None and status_of(lab) is not UserLabStatus.PENDING:
            lab = None
        old = self._pending.get(namespace)
        if _standing(old) == _standing(lab):
            return []
        if lab is None:
            self._pending.pop(namespace, None)
        else:
            self._pending[namespace] = lab
        before, self._ahead = self._ahead, places(self._pending.values(), self._starts_max)
        uids = {each: lab.record.uid for each, lab in self._pending.items()}
        return [each for each, uid in uids.items() if before.get(uid) != self._ahead.get(uid)]

    @property
    def waiting(self) -> int:
        """How many labs may not start yet."""
        return sum(ahead > 0 for ahead in self._ahead.values())

    def ahead(self, namespace: str) -> int:
        """Return how many labs must have started before this one may; 0 if it may now, or is not in line."""
        lab = self._pending.get(namespace)
        return self._ahead.get(lab.record.uid, 0) if lab is not None else 0


def _standing(lab: UserLab | None) -> object:
    """Return what counts in the line of a lab that is pending: nothing else moves it."""
    if lab is None:
        return None
    return (
        lab.record.uid,
        lab.record.request and lab.record.request.at,
        lab.second,
        lab.own_pod is None,
        lab.pod is None,
        lab.ready_at is None,
        lab.pod is not None and lab.pod.terminal,
    )


K = TypeVar("K", bound=Hashable)


class Listeners(Generic[K]):
    """Who waits for news, by key."""

    def __init__(self) -> None:
        """Begin without anybody."""
        self._events: dict[K, set[asyncio.Event]] = {}

    def __len__(self) -> int:
        """Count those who wait."""
        return sum(map(len, self._events.values()))

    @asynccontextmanager
    async def listen(self, key: K) -> AsyncIterator[asyncio.Event]:
        """Yield an event that is set whenever there are news about a key; the caller clears it."""
        news = asyncio.Event()
        self._events.setdefault(key, set()).add(news)
        try:
            yield news
        finally:
            its = self._events.get(key, set())
            its.discard(news)
            if not its:
                self._events.pop(key, None)

    def tell(self, key: K) -> None:
        """Set the events of a key."""
        for news in self._events.get(key, ()):
            news.set()


_NO_PODS: Final[Mapping[str, Pod]] = {}


class UserLabIndex:
    """User labs, and warm ones, by namespace and by user."""

    def __init__(
        self,
        mark: str,
        starts_max: int,
        wake: Callable[[str], None],
        *,
        longest_s: float = math.inf,
        age_s: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """Know nothing.

        Args:
            mark: The namespace of the portal, which is the mark of its objects.
            starts_max: Labs that start at once, at most.
            wake: Called with the namespace of a lab when anything about it has changed.
            longest_s: The longest time of a user.
            age_s: Returns how old all of it may be, if that matters; else 0.
        """
        self._mark = mark
        self._longest_s = longest_s
        self.age_s = age_s
        self._wake = wake
        self._records: dict[str, LabRecord] = {}
        self._pods: dict[str, dict[str, Pod]] = {}
        self._events: dict[str, dict[str, Event]] = {}
        self._definitions: dict[str, CustomResource] = {}
        self._of_user: dict[str, set[str]] = {}
        self._of_key: dict[str, set[str]] = {}
        self._listeners: Listeners[str] = Listeners()
        self._of_class: Listeners[str] = Listeners()
        self._line = WaitingLine(starts_max)

    # ------------------------------------------------------------------------------------------ what is known

    def lab(self, user: str) -> UserLab | None:
        """Return the lab of a user, by the exact name; None if there is none."""
        namespace = self._first(user)
        return self.at(namespace) if namespace is not None else None

    def labs(self) -> list[UserLab]:
        """Return the labs of all users, one for each, in the order of their names; no warm ones."""
        found = (self.lab(user) for user in sorted(self._of_user))
        return [lab for lab in found if lab is not None]

    def of_class(self, namespace: str) -> list[UserLab]:
        """Return the labs of a class, by the namespace of the class, in the order of their users."""
        found = (self.at(name) for name, record in self._records.items() if record.class_ == namespace and record.user)
        return sorted((lab for lab in found if lab is not None), key=lambda lab: (lab.user, lab.record.namespace))

    def classes(self) -> set[str]:
        """Return the namespaces of the classes that have user labs."""
        return {record.class_ for record in self._records.values() if record.class_ and record.user}

    def warm(self) -> list[UserLab]:
        """Return the warm labs."""
        labs = (self.at(namespace) for namespace, record in self._records.items() if record.warm)
        return [lab for lab in labs if lab is not None]

    def at(self, namespace: str) -> UserLab | None:
        """Return the lab of a namespace; None if that is not a lab's."""
        record = self._records.get(namespace)
        if record is None:
            return None
        pod, bench = self._pods_of(record)
        definition = self._definitions.get(pod.spec.runtime_class_name) if pod is not None else None
        return UserLab(
            record,
            pod,
            exposed=definition is None or bool(definition.spec.get("expose")),
            ahead=self._line.ahead(namespace),
            second=bool(record.user) and self._first(record.user) != namespace,
            longest_s=self._longest_s,
            bench=bench,
        )

    def strays(self, namespace: str) -> Mapping[str, Pod]:
        """Return the lablets with the mark, by name, of a namespace that has no user lab: they are none either."""
        its = _NO_PODS if namespace in self._records else self._pods.get(namespace, _NO_PODS)
        return {name: pod for name, pod in its.items() if self._is_lablet(pod)}

    def stray_namespaces(self) -> list[str]:
        """Return the namespaces that have such lablets."""
        return [namespace for namespace in self._pods if self.strays(namespace)]

    def definition(self, name: str) -> CustomResource | None:
        """Return a definition; None if there is none."""
        return self._definitions.get(name)

    def status_of(self, definition: str) -> DefinitionStatus:
        """Return the status of a definition; an empty one if there is none."""
        found = self.definition(definition)
        return definition_status(found) if found is not None else DefinitionStatus()

    def events_of(self, user: str) -> list[Event]:
        """Return the Events about the Pods in the namespace of a user's lab, in no order."""
        return self.events_at(self._first(user) or "")

    def events_at(self, namespace: str) -> list[Event]:
        """Return the Events about the Pods of a namespace, in no order."""
        return list(self._events.get(namespace, {}).values())

    def queued(self, user: str) -> int | None:
        """Return the place of a user's lab among those that wait until they may start, from 1; None if it does not."""
        return self._line.ahead(self._first(user) or "") or None

    def namespaces(self) -> list[str]:
        """Return the namespaces of all labs, warm ones too."""
        return list(self._records)

    def namespaces_of(self, key: str) -> set[str]:
        """Return the namespaces of the labs of a key: one, and after a race another one."""
        return set(self._of_key.get(key, ()))

    def about(self, key: str) -> ObjectRef:
        """Return the Pod of a key, or where it would be, for Events."""
        namespace = min(self._of_key.get(key, ()), default="")
        pods = self._pods.get(namespace, _NO_PODS)
        uid = pods[pod_name(key)].metadata.uid if pod_name(key) in pods else ""
        return ObjectRef("v1", "Pod", namespace, pod_name(key), uid)

    def listen(self, user: str) -> AbstractAsyncContextManager[asyncio.Event]:
        """Yield an event that is set whenever something about a user's lab has changed; the caller clears it."""
        return self._listeners.listen(user)

    def listen_class(self, namespace: str) -> AbstractAsyncContextManager[asyncio.Event]:
        """Yield an event that is set whenever something about a lab of a class has changed; the caller clears it."""
        return self._of_class.listen(namespace)

    @property
    def listeners_total(self) -> int:
        """How many listen."""
        return len(self._listeners) + len(self._of_class)

    @property
    def waiting(self) -> int:
        """How many labs wait until they may start."""
        return self._line.waiting

    def _first(self, user: str) -> str | None:
        """Return the namespace of a user's lab; the first of several, which end."""
        records = [self._records[namespace] for namespace in self._of_user.get(user, ())]
        first = min(records, key=precedence, default=None)
        return first.namespace if first is not None else None

    def _is_lablet(self, pod: Pod) -> bool:
        class_ = pod.spec.runtime_class_name
        return class_ in self._definitions or (bool(class_) and pod.spec.node_name.startswith(names.NODE_PREFIX))

    def _pods_of(self, record: LabRecord) -> tuple[Pod | None, Pod | None]:
        """Return the Pod of a lab, and that of its workbench; see `with_pod`."""
        lab = with_pod(UserLab(record), self._pods.get(record.namespace, _NO_PODS).values())
        return lab.pod, lab.bench

    # ------------------------------------------------------------------------------------------ what changes

    def namespace_changed(self, old: PartialObject | None, new: PartialObject | None) -> None:
        """Note a Namespace with the mark."""
        name = (new or old).metadata.name  # type: ignore[union-attr]  # (one of them is there)
        before = self._records.pop(name, None)
        after = record_of(new.metadata, self._mark) if new is not None else None
        for record, add in ((before, False), (after, True)):
            if record is not None:
                _note(self._of_key, record.key, name, add=add)
                if record.user:
                    _note(self._of_user, record.user, name, add=add)
        if after is not None:
            self._records[name] = after
        for class_ in {record.class_ for record in (before, after) if record is not None and record.class_}:
            self._of_class.tell(class_)
        for user in {record.user for record in (before, after) if record is not None and record.user}:
            self._listeners.tell(user)
            for other in self._of_user.get(user, ()):  # the second may have become the first
                self._wake(other)
        self._changed(name)

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """Note a Pod with the mark."""
        meta = (new or old).metadata  # type: ignore[union-attr]  # (as above)
        if new is not None:
            self._pods.setdefault(meta.namespace, {})[meta.name] = new
        else:
            _forget(self._pods, meta.namespace, meta.name)
        self._changed(meta.namespace)

    def event_changed(self, old: Event | None, new: Event | None) -> None:
        """Note an Event about a Pod; it is told, and decides nothing."""
        meta = (new or old).metadata  # type: ignore[union-attr]  # (as above)
        if new is not None:
            self._events.setdefault(meta.namespace, {})[meta.name] = new
        else:
            _forget(self._events, meta.namespace, meta.name)
        self._tell_at(meta.namespace)

    def definition_changed(self, old: CustomResource | None, new: CustomResource | None) -> None:
        """Note a definition."""
        name = (new or old).metadata.name  # type: ignore[union-attr]  # (as above)
        if new is not None:
            self._definitions[name] = new
        else:
            self._definitions.pop(name, None)

    def _changed(self, namespace: str) -> None:
        """Wake what a change of a lab concerns: its reconciler and listeners, and those whose place in line moved."""
        record = self._records.get(namespace)
        moved = self._line.put(namespace, UserLab(record, self._pods_of(record)[0]) if record is not None else None)
        for other in moved:
            self._tell_at(other)
            if self._line.ahead(other) == 0:
                self._wake(other)
        self._tell_at(namespace)
        self._wake(namespace)

    def _tell_at(self, namespace: str) -> None:
        record = self._records.get(namespace)
        if record is not None and record.user:
            self._listeners.tell(record.user)
        if record is not None and record.class_:
            self._of_class.tell(record.class_)


def with_pod(lab: UserLab, pods: Iterable[Pod]) -> UserLab:
    """Return a lab with its Pods, of those in its namespace.

    Its own is that of the request, else the first that is in the way.
    """
    pods = list(pods)
    lab = lab._replace(pod=None, bench=next(filter(is_bench, pods), None))
    found = (lab._replace(pod=pod) for pod in pods if not is_bench(pod))
    return min(found, key=lambda each: (each.own_pod is None, each.pod_created_at), default=lab)


def _note(table: dict[str, set[str]], name: str, namespace: str, *, add: bool) -> None:
    its = table.setdefault(name, set())
    (its.add if add else its.discard)(namespace)
    if not its:
        del table[name]


def _forget(table: dict[str, dict[str, Pod]] | dict[str, dict[str, Event]], namespace: str, name: str) -> None:
    its = table.get(namespace, {})
    its.pop(name, None)
    if not its:
        table.pop(namespace, None)
