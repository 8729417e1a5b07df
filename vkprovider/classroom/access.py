"""What makes an assigned lablet work for its learner: a Role on that Pod, bound to the learner.

It lets the learner read the Pod and its story and open its consoles, and nothing else: neither is the Pod changed, nor
another one seen. Whoever assigns writes it with the own rights, and the policy `vkprovider-assignments` keeps an
instructor to this name and form (`manifests/base/instructors.yaml`).

    Role, RoleBinding `vkprovider-assigned:POD`     owned by the Pod, by its UID
    subjects                                        the learner and the guests, with the prefix that usernames of the
                                                    cluster have, and the ServiceAccounts of their links

The Pod says whose it is, and is written first; these follow, and every caller writes them who assigns the same again.
They end with the Pod, by the garbage collector; and while it stays, the provider deletes them before it is the next
learner's (`labs.controllers.lablet.effects`). Of a caller who was held up meanwhile, what was written too late is found
by comparing it with the Pods once more (`sweep`): by that caller, or by the next one who assigns in the namespace.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from vkprovider.classroom.links import NAMED_MAX, carried
from vkprovider.classroom.pods import LabletPod, pods_in
from vkprovider.lablet import names
from vkprovider.lablet.guests import guests_in, guests_note
from vkprovider.platform.concurrency import at_most
from vkprovider.platform.errors import Conflict, Forbidden, OutsideError
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.resources import Kind, Resource, kind
from vkprovider.platform.messages import listed
from vkprovider.platform.objects import Metadata, RoleBinding

GROUP: Final = "rbac.authorization.k8s.io"
_API: Final = f"/apis/{GROUP}/v1"
_LABELS: Final = f"{names.LABEL_COMPONENT}={names.COMPONENT_ASSIGNMENT}"
_AT_ONCE: Final = 8
_TRIES: Final = 5


class AssignedRole(msgspec.Struct, frozen=True):
    """A Role, with what it allows; the API server may answer null for rules that are none."""

    metadata: Metadata
    rules: list[dict[str, Any]] | None = None


ROLES: Final[Kind[AssignedRole]] = kind(_API, "roles", AssignedRole)
BINDINGS: Final[Kind[RoleBinding]] = kind(_API, "rolebindings", RoleBinding)


def role_for(pod: LabletPod) -> dict[str, Any]:
    """Return the Role on a Pod."""
    named = {"apiGroups": [""], "resourceNames": [pod.metadata.name]}
    rules = [
        {**named, "resources": ["pods", "pods/log"], "verbs": ["get"]},
        {**named, "resources": ["pods/exec", "pods/attach"], "verbs": ["get", "create"]},
    ]
    return {"apiVersion": f"{GROUP}/v1", "kind": "Role", "metadata": _metadata(pod), "rules": rules}


def binding_for(pod: LabletPod, prefix: str, links: Sequence[str] = ()) -> dict[str, Any]:
    """Return the RoleBinding that gives a Pod's learner, and the guests, the Role on it.

    Args:
        pod: The learner's.
        prefix: What the usernames of learners begin with in the cluster.
        links: The ServiceAccounts of the links that lead to the Pod.
    """
    meta, guests = _metadata(pod), guests_note(pod.guests)
    people = [{"apiGroup": GROUP, "kind": "User", "name": prefix + name} for name in (pod.user, *sorted(pod.guests))]
    acting = [{"kind": "ServiceAccount", "name": name, "namespace": pod.metadata.namespace} for name in links]
    shared = {names.ANNOTATION_GUESTS: guests} if guests else {}
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "RoleBinding",
        "metadata": {**meta, "annotations": {names.ANNOTATION_USERNAME: pod.user, **shared}},
        "roleRef": {"apiGroup": GROUP, "kind": "Role", "name": meta["name"]},
        "subjects": [*people, *acting],
    }


def _metadata(pod: LabletPod) -> dict[str, Any]:
    meta = pod.metadata
    return {
        "name": names.assignment_name(meta.name),
        "namespace": meta.namespace,
        "labels": {names.LABEL_COMPONENT: names.COMPONENT_ASSIGNMENT},
        "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": meta.name, "uid": meta.uid}],
    }


def stale(bindings: Iterable[RoleBinding], pods: Iterable[LabletPod]) -> list[RoleBinding]:
    """Return the bindings whose learner has that Pod no more, or that let in who is no guest there any more.

    Args:
        bindings: Of assignments.
        pods: All Pods of the namespace, read after the bindings: each Pod was given before it got one.
    """
    living = {pod.metadata.uid: pod for pod in pods}

    def is_good(meta: Metadata) -> bool:
        pod = living.get(_owner(meta))
        if pod is None or pod.user != meta.annotations.get(names.ANNOTATION_USERNAME, ""):
            return False
        return guests_in(meta.annotations).keys() <= pod.guests.keys()

    return [binding for binding in bindings if not is_good(binding.metadata)]


def _owner(meta: Metadata) -> str:
    return next((owner.uid for owner in meta.owner_references if owner.kind == "Pod"), "")


async def username_prefix(kube: KubeClient, namespace: str) -> str:
    """Return what the usernames of learners begin with in the cluster, as an admin has said it of a class; "" if not.

    Raises:
        OutsideError: It cannot be read.
    """
    found = await Resource(kube, BINDINGS, namespace).metadata_only.get(names.ROLE_INSTRUCTOR)
    return found.metadata.annotations.get(names.ANNOTATION_USERNAME_PREFIX, "") if found is not None else ""


async def open_access(kube: KubeClient, namespace: str, pods: Sequence[LabletPod]) -> tuple[str, ...]:
    """Let each learner into the own Pod, and nobody into one that is no more theirs; repeat it at will.

    Args:
        kube: The API server, with the rights of whoever assigns.
        namespace: Of the Pods.
        pods: As they were given; one without a learner is left out.

    Returns:
        Whom it does not let in, and why: sentences for whoever assigns.

    Raises:
        OutsideError: The API server did not do it; what was given stays given.
    """
    given = [pod for pod in pods if pod.user and not pod.over]
    if not given:
        return ()
    try:
        await _open_all(kube, namespace, given)
        await sweep(kube, namespace)
    except Forbidden as error:
        return (_closed(given, error, namespace),)
    return ()


async def let_in(kube: KubeClient, namespace: str, pods: Sequence[LabletPod]) -> tuple[str, ...]:
    """Do as `open_access`, but say in a sentence that the API server did not do it: codes of links wait to be told."""
    try:
        return await open_access(kube, namespace, pods)
    except OutsideError as error:
        who = listed([pod.user for pod in pods], NAMED_MAX)
        return (f"who may open the lablet of {who} is not written yet: {error.message}. Run the same command again",)


async def guests_let_in(kube: KubeClient, pod: LabletPod) -> frozenset[str]:
    """Return the guests whom the binding of a Pod's assignment names, also those who are none any more.

    Without a right to read it, there are none.

    Raises:
        OutsideError: It cannot be read.
    """
    meta = pod.metadata
    try:
        found = await Resource(kube, BINDINGS, meta.namespace).get(names.assignment_name(meta.name))
    except Forbidden:
        return frozenset()
    return frozenset(guests_in(found.metadata.annotations)) if found is not None else frozenset()


async def _open_all(kube: KubeClient, namespace: str, pods: Sequence[LabletPod]) -> None:
    """Write Roles and bindings of Pods where they are not as they should be.

    Raises:
        OutsideError: The API server did not do it.
    """
    roles, bindings = Resource(kube, ROLES, namespace), Resource(kube, BINDINGS, namespace)
    prefix = await username_prefix(kube, namespace)
    standing_roles = {each.metadata.name: each for each in await roles.list(labels=_LABELS)}
    standing = {each.metadata.name: each for each in await bindings.list(labels=_LABELS)}
    links = await carried(kube, namespace, pods)

    async def open_one(pod: LabletPod) -> None:
        role, name = role_for(pod), names.assignment_name(pod.metadata.name)
        binding = binding_for(pod, prefix, links.get(pod.metadata.uid, ()))

        async def is_given() -> bool:
            return await _is_given(kube, pod)

        if not _fits_role(standing_roles.get(name), role):
            await _replace(roles, role, _fits_role, is_given)
        if not _fits_binding(standing.get(name), binding):
            await _replace(bindings, binding, _fits_binding, is_given)

    await at_most(_AT_ONCE, open_one, pods)


async def sweep(kube: KubeClient, namespace: str) -> None:
    """Delete the bindings of a namespace whose learner has the Pod no more.

    One that still admits a former guest, because the removal was interrupted, is rewritten: its learner has the Pod.

    Raises:
        OutsideError: The API server did not do it.
    """
    bindings = Resource(kube, BINDINGS, namespace)
    if not (standing := await bindings.list(labels=_LABELS)):
        return
    pods = await pods_in(kube, namespace).list()
    living = {pod.metadata.uid: pod for pod in pods if pod.user and not pod.over}
    over, shared = [], []
    for binding in stale(standing, pods):
        pod = living.get(_owner(binding.metadata))
        if pod is not None and pod.user == binding.metadata.annotations.get(names.ANNOTATION_USERNAME, ""):
            shared.append(pod)
        else:
            over.append(binding)
    if shared:
        await _open_all(kube, namespace, shared)

    async def delete(binding: RoleBinding) -> None:
        meta = binding.metadata
        try:
            await bindings.delete(meta.name, uid=meta.uid, resource_version=meta.resource_version)
        except Conflict:
            return  # somebody has assigned the Pod again

    await at_most(_AT_ONCE, delete, over)


async def _is_given(kube: KubeClient, pod: LabletPod) -> bool:
    """Return whether a Pod still is its learner's, with the same guests."""
    now = await pods_in(kube, pod.metadata.namespace).get(pod.metadata.name)
    if now is None or now.metadata.uid != pod.metadata.uid:
        return False
    return (now.user, now.guests) == (pod.user, pod.guests)


async def _replace(
    resource: Resource[Any],
    body: Mapping[str, Any],
    fits: Callable[[Any, Mapping[str, Any]], bool],
    is_given: Callable[[], Awaitable[bool]],
) -> None:
    """Have an object stand as it should; one of an earlier assignment is deleted, and not changed.

    The garbage collector may be about to delete the old one, by its UID, because its Pod is gone.

    Raises:
        Conflict: Others write it all the time.
    """
    name = body["metadata"]["name"]
    for _ in range(_TRIES):
        try:
            await resource.create(body)
        except Conflict:
            found = await resource.get(name)
        else:
            return
        if found is None:
            continue
        if fits(found, body) or not await is_given():
            return
        try:
            await resource.delete(name, uid=found.metadata.uid, resource_version=found.metadata.resource_version)
        except Conflict:
            continue
    raise Conflict(f"{name} in namespace {resource.namespace} is written to all the time; run the same command again")


def _fits_role(found: AssignedRole | None, body: Mapping[str, Any]) -> bool:
    return found is not None and _is_of(found.metadata, body) and found.rules == body["rules"]


def _fits_binding(found: RoleBinding | None, body: Mapping[str, Any]) -> bool:
    if found is None or not _is_of(found.metadata, body):
        return False
    subjects = [(each.kind, each.name, each.namespace) for each in found.subjects or ()]
    wanted = [(each["kind"], each["name"], each.get("namespace", "")) for each in body["subjects"]]
    said, notes = found.metadata.annotations, body["metadata"]["annotations"]
    same = all(said.get(name) == notes.get(name) for name in (names.ANNOTATION_USERNAME, names.ANNOTATION_GUESTS))
    return same and subjects == wanted


def _is_of(meta: Metadata, body: Mapping[str, Any]) -> bool:
    owner: str = body["metadata"]["ownerReferences"][0]["uid"]
    return _owner(meta) == owner


def _closed(pods: Sequence[LabletPod], error: Forbidden, namespace: str) -> str:
    """Say who has a lablet that no account of the cluster opens."""
    who, verb = listed([pod.user for pod in pods], NAMED_MAX), "has" if len(pods) == 1 else "have"
    return (
        f"{who} {verb} the lablet and no right to open it as a user of the cluster: {error.message}. Whoever has the "
        f"ClusterRole {names.ROLE_INSTRUCTOR} of this version in namespace {namespace} runs the same command again"
    )
