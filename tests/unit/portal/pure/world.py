"""A tiny world for `decide`: an API server, two replicas of the portal whose watches lag, users, and strangers.

Records, decisions and places are the product's; only what carries them out is a model. A replica writes one object at
a time and may be killed before each, or be told nothing of a write that was carried out. What it remembers is lost when
it is killed. Every rule that user labs must never break is asserted where it would be broken.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Final

import msgspec

from vkprovider.lablet import names
from vkprovider.platform import wellknown
from vkprovider.platform.errors import Conflict
from vkprovider.platform.objects import Condition, Container, Metadata, Pod, PodSpec, PodStatus
from vkprovider.platform.times import iso
from vkprovider.portal.pure import decide as steps
from vkprovider.portal.pure import facts, leading, portalnames
from vkprovider.portal.pure import record as records
from vkprovider.portal.pure.decide import decide
from vkprovider.portal.pure.facts import UserLab
from vkprovider.portal.pure.portalnames import UserLabReason, namespace_of, pod_name, user_key, warm_key
from vkprovider.portal.pure.record import LabRecord, LabRequest
from vkprovider.portal.settings import PortalSettings

MARK: Final = "vkprovider"
IMAGE: Final = "netlab:1.0"
WARM: Final = 2
SETTINGS: Final = PortalSettings(
    start_timeout_s=600, delete_timeout_s=300, duration_s=3600, idle_s=0, failed_s=1800, starts_max=2
)


@dataclass(frozen=True)
class Namespace:
    """A Namespace with what is in it.

    Attributes:
        secret: The id of the request that its Secret was written for; "" without one.
    """

    meta: Metadata
    secret: str = ""
    pod: Pod | None = None


Task = Iterator[None]
"""What a replica carries out; it pauses before each write."""


@dataclass
class Replica:
    """A replica of the portal.

    Attributes:
        seen: The Namespaces and Pods that its watches have shown.
        written: The requests whose Secret it wrote.
        tasks: What it carries out, by the key whose lock it holds for it.
    """

    name: str
    seen: dict[str, Namespace] = field(default_factory=dict)
    written: set[str] = field(default_factory=set)
    tasks: dict[str, Task] = field(default_factory=dict)


class World:
    """The API server, and all who write to it."""

    def __init__(self) -> None:
        self.now = 1_769_860_800
        self.namespaces: dict[str, Namespace] = {}
        self.locks: dict[str, str] = {}
        self.replicas = {name: Replica(name) for name in "AB"}
        self.numbers = count(1)
        self.made: dict[str, int] = {}
        """How many Pods were made for a request."""
        self.answered: dict[str, str] = {}
        """The requests that were accepted, and whose."""
        self.strange: set[str] = set()
        """Requests whose lab a stranger has meddled with."""
        self.excused: set[str] = set()
        """Requests whose lab somebody asked to delete, or whose record was kept for long enough."""
        self.late = False
        """Whether a replica may have written after it was overtaken."""

    # The API server.

    def write(self, name: str, namespace: Namespace) -> None:
        version = str(next(self.numbers))
        meta = msgspec.structs.replace(namespace.meta, resource_version=version)
        self.namespaces[name] = replace(namespace, meta=meta)

    def labs(self, found: dict[str, Namespace]) -> list[UserLab]:
        """The user labs among Namespaces, as an index has them."""
        labs = []
        for namespace in found.values():
            record = records.record_of(namespace.meta, MARK)
            if record is not None:
                labs.append(UserLab(record, namespace.pod, exposed=False))
        places = facts.places(labs, SETTINGS.starts_max)
        first: dict[str, UserLab] = {}
        for lab in sorted(labs, key=_precedence):
            first.setdefault(lab.user, lab)
        return [
            lab._replace(ahead=places.get(lab.record.uid, 0), second=bool(lab.user) and first[lab.user] is not lab)
            for lab in labs
        ]

    def at(self, found: dict[str, Namespace], name: str) -> UserLab | None:
        return next((lab for lab in self.labs(found) if lab.record.namespace == name), None)

    def create_namespace(self, name: str, labels: dict[str, str], annotations: dict[str, str]) -> None:
        if name in self.namespaces:
            raise Conflict("it is not as it was read")
        uid = f"uid-{next(self.numbers)}"
        meta = Metadata(name, uid=uid, creation_timestamp=iso(self.now), labels=labels, annotations=annotations)
        self.write(name, Namespace(meta))

    def patch(self, record: LabRecord, annotations: dict[str, Any], labels: dict[str, str] | None = None) -> None:
        """Change annotations and labels if the Namespace is as the record says."""
        namespace = self.expect(record)
        noted = {key: text for key, text in {**namespace.meta.annotations, **annotations}.items() if text is not None}
        meta = msgspec.structs.replace(namespace.meta, annotations=noted, labels=namespace.meta.labels | (labels or {}))
        self.write(record.namespace, replace(namespace, meta=meta))

    def expect(self, record: LabRecord) -> Namespace:
        namespace = self.namespaces.get(record.namespace)
        if namespace is None or namespace.meta.resource_version != record.resource_version:
            raise Conflict("it is not as it was read")
        assert namespace.meta.labels.get(portalnames.LABEL_PORTAL) == MARK, "a stranger's Namespace is not touched"
        return namespace

    def create_pod(self, lab: UserLab, end_at: int | None) -> None:
        request = lab.record.request
        namespace = self.namespaces.get(lab.record.namespace)
        assert request is not None
        if namespace is None or namespace.meta.deletion_timestamp is not None or namespace.pod is not None:
            raise Conflict("it cannot be made")  # it exists, or nothing may be created there
        self.made[request.id] = self.made.get(request.id, 0) + 1
        labels = {portalnames.LABEL_PORTAL: MARK, portalnames.LABEL_REQUEST: request.id}
        pod = Pod(
            Metadata(
                pod_name(lab.key),
                lab.record.namespace,
                uid=f"pod-{next(self.numbers)}",
                creation_timestamp=iso(self.now),
                labels=labels | ({portalnames.LABEL_USER: lab.key} if lab.user else {}),
                annotations={names.ANNOTATION_TIMESLOT_END: iso(end_at)} if end_at is not None else {},
            ),
            PodSpec([Container("lab")]),
        )
        self.namespaces[lab.record.namespace] = replace(namespace, pod=pod)

    def assign_pod(self, lab: UserLab, end_at: int) -> None:
        namespace = self.namespaces.get(lab.record.namespace)
        pod = namespace.pod if namespace is not None else None
        if namespace is None or pod is None or lab.pod is None or pod.metadata.uid != lab.pod.metadata.uid:
            raise Conflict("it is not as it was read")
        request = lab.record.request
        assert request is not None
        assert pod.metadata.labels.get(portalnames.LABEL_USER, lab.key) == lab.key, (
            "a Pod that has a user gets no other"
        )
        meta = msgspec.structs.replace(
            pod.metadata,
            labels=pod.metadata.labels | {portalnames.LABEL_USER: lab.key, portalnames.LABEL_REQUEST: request.id},
            annotations={names.ANNOTATION_TIMESLOT_END: iso(end_at)},
        )
        self.set_pod(lab.record.namespace, msgspec.structs.replace(pod, metadata=meta))

    def set_pod(self, name: str, pod: Pod | None) -> None:
        self.namespaces[name] = replace(self.namespaces[name], pod=pod)

    def mark_pod_deleted(self, name: str) -> None:
        pod = self.namespaces[name].pod
        if pod is not None and pod.metadata.deletion_timestamp is None:
            meta = msgspec.structs.replace(pod.metadata, deletion_timestamp=iso(self.now))
            self.set_pod(name, msgspec.structs.replace(pod, metadata=meta))

    def mark_deleted(self, name: str) -> None:
        """Begin to delete a Namespace."""
        namespace = self.namespaces[name]
        if namespace.meta.deletion_timestamp is None:
            meta = msgspec.structs.replace(namespace.meta, deletion_timestamp=iso(self.now))
            self.write(name, replace(namespace, meta=meta))

    # The portal.

    def lock(self, replica: Replica, key: str) -> bool:
        if self.locks.get(key, replica.name) != replica.name or key in replica.tasks:
            return False
        self.locks[key] = replica.name
        return True

    def request(self, replica: Replica, user: str) -> bool:
        """Ask a replica for a lab; return whether it takes the request in hand."""
        key = user_key(user)
        if not self.lock(replica, key):
            return False
        replica.tasks[key] = self._create(replica, user)
        return True

    def _create(self, replica: Replica, user: str) -> Task:
        request = LabRequest(
            secrets=(),
            id=f"r{next(self.numbers)}",
            at=self.now,
            definition=IMAGE,
            by=user,
            duration_s=SETTINGS.duration_s,
        )
        labels = records.labels_for(MARK, user)
        there = sorted((lab for lab in self.labs(self.namespaces) if lab.user == user), key=_precedence)  # a live list
        if there:
            name = there[0].record.namespace
            if facts.may_create(there[0]) is not None:
                return
            yield
            if self.namespaces.get(name) is not None:
                self.namespaces[name] = replace(self.namespaces[name], secret="")
            yield
            self.patch(there[0].record, records.replaced(user, request))
        elif takeable := leading.takeable(self.labs(replica.seen), IMAGE):
            yield
            name = takeable[0].record.namespace
            self.patch(takeable[0].record, records.annotations_for(user, request), labels)
        else:
            yield
            name = namespace_of("nublado", user)
            self.create_namespace(name, labels, records.annotations_for(user, request))
        yield
        namespace = self.namespaces.get(name)
        if namespace is None or namespace.meta.deletion_timestamp is not None or namespace.secret:
            raise Conflict("it is not as it was read")
        self.namespaces[name] = replace(namespace, secret=request.id)
        replica.written.add(request.id)
        self.answered[request.id] = user

    def ask_to_delete(self, replica: Replica, user: str) -> None:
        """Write that a lab is to be deleted, without a lock, as the replica knows it."""
        for lab in self.labs(replica.seen):
            record = lab.record
            failed = facts.status_of(lab) is facts.UserLabStatus.FAILED
            if lab.user == user and not record.deleted and (record.ending is None or failed):
                try:
                    self.patch(record, records.annotation(records.ending(f"e{next(self.numbers)}", self.now, by=user)))
                except Conflict:
                    return
                self.excused.update(self._requests_at(record.namespace))

    def turn(self, replica: Replica, name: str) -> bool:
        """Have a replica look after a lab; return whether there is something to do that it can do."""
        lab = self.at(replica.seen, name)
        if lab is None or not lab.key:
            return False
        sealed = True if self._wrote(replica, lab) else None
        plan = decide(lab, self.now, SETTINGS, sealed=sealed)
        if plan.step is None:
            if lab.key not in replica.tasks and self.locks.get(lab.key) == replica.name:
                del self.locks[lab.key]
            return False
        if not self.lock(replica, lab.key):
            return False
        replica.tasks[lab.key] = self._act(lab, plan.step)
        return True

    def _wrote(self, replica: Replica, lab: UserLab) -> bool:
        return lab.record.request is not None and lab.record.request.id in replica.written

    def _act(self, lab: UserLab, step: steps.LabStep) -> Task:
        record = lab.record
        if isinstance(step, steps.Look):
            found = self.at(self.namespaces, record.namespace)
            if found is None or found.record.resource_version != record.resource_version:
                return  # the watch will show it
            lab = found
            sealed = record.request is not None and self.namespaces[record.namespace].secret == record.request.id
            looked = decide(lab, self.now, SETTINGS, looked=True, sealed=sealed).step
            assert not isinstance(looked, steps.Look), "a look is enough"
            if looked is None:
                return
            step = looked
        yield
        match step:
            case steps.Make(end_at=end_at):
                yield  # ConfigMap, RoleBinding and ServiceAccount
                self.create_pod(lab, end_at)
            case steps.Assign(end_at=end_at):
                yield
                self.assign_pod(lab, end_at)
            case steps.DeletePod(uid=uid):
                self._delete_pod(lab, uid)
            case steps.Free():
                raise AssertionError("no Pod here has a finalizer")
            case steps.Reseal():
                raise AssertionError("no lab here is of an earlier version")
            case steps.MakeBench() | steps.DeleteBench() | steps.NoteProvisioned():
                raise AssertionError("no lab here has a workbench")
            case steps.DeleteNamespace():
                namespace = self.expect(record)
                assert namespace.pod is None, "the Pod goes before the Namespace"
                assert not self._served(record), "a lab that was answered for and has not ended stays"
                ended = record.outcome
                if ended is not None and ended.phase == records.FAILED:
                    assert record.ending is not None or self.now >= ended.at + SETTINGS.failed_s, (
                        "it is kept for a time"
                    )
                    self.excused.update(self._requests_at(record.namespace))
                self.mark_deleted(record.namespace)
            case steps.Complete():
                self.patch(record, self._ended(record, "complete"))
            case steps.Fail(reason=reason, text=text):
                self.patch(record, self._ended(record, "failed", reason=reason.value, text=text))
            case steps.End(reason=reason):
                allowed = {UserLabReason.TIME_OVER, UserLabReason.POD_ENDED}
                assert reason in allowed or lab.second or record.warm
                self.patch(
                    record, records.annotation(records.ending(f"e{next(self.numbers)}", self.now, reason=reason))
                )
                self.excused.update(self._requests_at(record.namespace))

    def _ended(self, record: LabRecord, phase: Any, **why: str) -> dict[str, str]:
        ended = records.ended(record, phase, self.now, **why)
        assert ended is not None
        return records.annotation(ended)

    def _served(self, record: LabRecord) -> bool:
        """Whether a user was told that the lab is made, and nothing has ended it."""
        request = record.request
        failed = record.outcome is not None and record.outcome.phase == records.FAILED
        return request is not None and request.id in self.answered and record.ending is None and not failed

    def _delete_pod(self, lab: UserLab, uid: str) -> None:
        namespace = self.namespaces.get(lab.record.namespace)
        if namespace is None or namespace.pod is None or namespace.pod.metadata.uid != uid:
            raise Conflict("it is not as it was read")
        found = records.record_of(namespace.meta, MARK)
        if found is not None and found.request is not None and found.key and not found.damaged:
            own = namespace.pod.metadata.labels[portalnames.LABEL_REQUEST] == found.request.id
            assert not (own and self._served(found)), "a lab that was answered for and has not ended keeps its Pod"
        self.mark_pod_deleted(lab.record.namespace)

    def keep_warm(self, replica: Replica) -> bool:
        """Have a replica make and end warm labs, as far as it knows them."""
        plan = leading.warm_plan([lab for lab in self.labs(replica.seen) if lab.record.warm], {"netlab": (IMAGE, WARM)})
        if not self.lock(replica, "warm"):
            return False
        replica.tasks["warm"] = self._keep_warm(plan)
        return bool(plan.make or plan.end)

    def _keep_warm(self, plan: leading.WarmPlan) -> Task:
        for image, number in plan.make.values():
            for _ in range(number):
                yield
                request = LabRequest(id=f"w{next(self.numbers)}", at=self.now, definition=image)
                name = f"nublado-{warm_key(next(self.numbers))}"
                self.create_namespace(name, records.warm_labels_for(MARK, "netlab"), records.annotation(request))
        for lab in plan.end:
            yield
            ending = records.ending(f"e{next(self.numbers)}", self.now, reason=UserLabReason.TIME_OVER)
            self.patch(lab.record, records.annotation(ending))

    def advance(self, replica: Replica, key: str, *, answer_is_lost: bool = False) -> None:
        """Carry out the next write of a task; `answer_is_lost` if the replica is not told of it and gives up."""
        task = replica.tasks[key]
        try:
            next(task)
        except (StopIteration, Conflict):
            self._drop(replica, key)
        else:
            if answer_is_lost:
                self._drop(replica, key)

    def _drop(self, replica: Replica, key: str) -> None:
        del replica.tasks[key]
        if self.locks.get(key) == replica.name:
            del self.locks[key]

    def kill(self, replica: Replica) -> None:
        """End a replica; another process begins in its place, and what it held is free when it is known to be gone."""
        self.locks = {key: holder for key, holder in self.locks.items() if holder != replica.name}
        self.replicas[replica.name] = Replica(replica.name, dict(self.namespaces))

    def overtake(self, replica: Replica) -> None:
        """Free the locks of a replica that stands still and, when it goes on, does not know that it was overtaken."""
        self.late = self.late or bool(replica.tasks)
        self.locks = {key: holder for key, holder in self.locks.items() if holder != replica.name}

    def sync(self, replica: Replica, *, pods: bool, namespaces: bool) -> None:
        """Deliver what a replica's watches of Pods and of Namespaces have not shown yet."""
        seen = {}
        for name in sorted(self.namespaces.keys() | replica.seen.keys()):
            new, old = self.namespaces.get(name), replica.seen.get(name)
            base = new if namespaces else old
            if base is not None:
                pod = (new.pod if new is not None else None) if pods else (old.pod if old is not None else None)
                seen[name] = replace(base, pod=pod)
        replica.seen = seen

    # The provider, Kubernetes and strangers.

    def pod_goes_on(self, name: str, phase: str) -> None:
        """Have a Pod boot, or end."""
        namespace = self.namespaces.get(name)
        pod = namespace.pod if namespace is not None else None
        if pod is None or pod.terminal:
            return
        end = pod.metadata.annotations.get(names.ANNOTATION_TIMESLOT_END)
        if phase == "Succeeded" and (end is None or end > iso(self.now)):
            return
        ready = Condition("Ready", "True" if phase == "Running" else "False", last_transition_time=iso(self.now))
        self.set_pod(name, msgspec.structs.replace(pod, status=PodStatus(phase, conditions=[ready])))

    def collect(self) -> None:
        """Remove what is deleted: Pods first, then Namespaces."""
        for name, namespace in list(self.namespaces.items()):
            pod = namespace.pod
            if pod is not None and pod.metadata.deletion_timestamp is not None:
                self.set_pod(name, None)
            elif namespace.meta.deletion_timestamp is not None and pod is not None:
                self.mark_pod_deleted(name)
            elif namespace.meta.deletion_timestamp is not None:
                del self.namespaces[name]

    def meddle(self, name: str, how: str) -> None:
        """Have a stranger change a Namespace, or what is in it."""
        namespace = self.namespaces.get(name)
        if namespace is None:
            return
        self.strange.update(self._requests_at(name))
        match how:
            case "delete namespace":
                self.mark_deleted(name)
            case "delete pod":
                self.mark_pod_deleted(name)
            case "delete secret":
                self.namespaces[name] = replace(namespace, secret="")
            case "unmark":
                labels = {key: text for key, text in namespace.meta.labels.items() if key != portalnames.LABEL_PORTAL}
                self.write(name, replace(namespace, meta=msgspec.structs.replace(namespace.meta, labels=labels)))
            case _:
                annotations = namespace.meta.annotations | {f"{wellknown.GROUP}/{how}": "{"}
                meta = msgspec.structs.replace(namespace.meta, annotations=annotations)
                self.write(name, replace(namespace, meta=meta))

    def occupy(self, user: str) -> None:
        """Have a stranger make the Namespace that a user's lab would get."""
        name = namespace_of("nublado", user)
        if name not in self.namespaces:
            self.create_namespace(name, {}, {portalnames.ANNOTATION_USER: user})

    def _requests_at(self, name: str) -> set[str]:
        found = records.record_of(self.namespaces[name].meta, MARK)
        return {found.request.id} if found is not None and found.request is not None else set()

    # All of them.

    def settle(self, turns: int = 60) -> None:
        """Let everybody go on until nothing changes."""
        for _ in range(turns):
            before = dict(self.namespaces)
            for replica in self.replicas.values():
                self.sync(replica, pods=True, namespaces=True)
                for key in list(replica.tasks):
                    self.advance(replica, key)
                for name in list(self.namespaces):
                    self.turn(replica, name)
            self.collect()
            for name, namespace in list(self.namespaces.items()):
                if namespace.pod is not None and namespace.pod.status.phase == "Pending":
                    self.pod_goes_on(name, "Running")
                self.pod_goes_on(name, "Succeeded")
            if before == self.namespaces and not any(replica.tasks for replica in self.replicas.values()):
                return
        raise AssertionError("it does not come to rest")

    def check(self) -> None:
        """Assert what always holds."""
        for request, number in self.made.items():
            assert number == 1 or request in self.strange, "one Pod for each request"
        if not self.late:
            self.check_one_lab()

    def check_one_lab(self) -> None:
        """Assert that no user has two labs."""
        served = [
            lab.user
            for lab in self.labs(self.namespaces)
            if lab.user and not lab.record.deleted and self._served(lab.record) and not lab.record.damaged
        ]
        assert len(served) == len(set(served)), "one lab for each user"


def _precedence(lab: UserLab) -> tuple[bool, bool, float, str]:
    return facts.precedence(lab.record)
