"""How a lab is made: everything that stands in its namespace.

`LabObjects` writes Namespaces and Pods, and shows what it has written until the watches do.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec

from vkprovider.lablet import names
from vkprovider.lablet.inputs import tag_of
from vkprovider.lablet.podspec import device_containers
from vkprovider.platform.concurrency import at_most
from vkprovider.platform.errors import Conflict
from vkprovider.platform.kube.api import CONFIG_MAPS, SECRETS
from vkprovider.platform.kube.client import Guard
from vkprovider.platform.kube.resources import ChangeHow, PartialObject, Resource, kind
from vkprovider.platform.objects import CustomResource, RoleBinding
from vkprovider.platform.runtime.context import Context
from vkprovider.platform.times import iso
from vkprovider.portal.pure import portalnames
from vkprovider.portal.pure.facts import UserLab
from vkprovider.portal.pure.leading import BINDING, Bind, Unbind
from vkprovider.portal.pure.portalnames import (
    binding_name,
    env_name,
    learner_of,
    parameters_name,
    pod_name,
    secret_name,
    username_of,
)
from vkprovider.portal.pure.record import labels_for, warm_labels_for
from vkprovider.portal.service.index import with_pod
from vkprovider.portal.service.informers import PortalInformers
from vkprovider.portal.service.records import (
    Pods,
    Records,
    config_map_body,
    env_from,
    instructors_body,
    named,
    parameters_body,
    role_binding_body,
    secret_body,
    service_account_body,
)

_ACCOUNTS: Final = kind("/api/v1", "serviceaccounts", PartialObject)
_BINDINGS: Final = kind("/apis/rbac.authorization.k8s.io/v1", "rolebindings", PartialObject)


class Contents:
    """Writes Secrets, ConfigMaps, ServiceAccounts and RoleBindings, and remembers whose Secrets it has written."""

    def __init__(self, ctx: Context) -> None:
        self._kube = ctx.kube
        self._secrets = Resource(ctx.kube, SECRETS).metadata_only
        self._config_maps = Resource(ctx.kube, CONFIG_MAPS).metadata_only
        self._accounts = Resource(ctx.kube, _ACCOUNTS).metadata_only
        self._bindings = Resource(ctx.kube, _BINDINGS).metadata_only
        self._sealed: dict[str, str] = {}

    async def secret(self, namespace: str, body: Mapping[str, Any], request: str, guard: Guard) -> None:
        """Create the Secret of a request, whose id is remembered with the namespace.

        Raises:
            Conflict: There is one.
        """
        await self._secrets.within(namespace).create(body, guard=guard)
        self._sealed[namespace] = request

    def has_written_secret(self, namespace: str, request: str) -> bool:
        """Return whether the last Secret that this replica wrote in a namespace is that of a request."""
        return self._sealed.get(namespace) == request

    def forget(self, namespace: str) -> None:
        """Forget a namespace that has no lab any more."""
        self._sealed.pop(namespace, None)

    async def has_secret(self, namespace: str, name: str, labels: Mapping[str, str], guard: Guard) -> bool:
        """Return whether the Secret is there: the portal cannot read Secrets, so it tries a dry run of making it."""
        body = msgspec.json.encode(secret_body(name, labels, {}))
        path = self._secrets.within(namespace).path
        try:
            await self._kube.create(path, body, params={"dryRun": "All"}, guard=guard, brief=True)
        except Conflict:
            return True
        return False

    async def reseal(self, namespace: str, name: str, labels: Mapping[str, str], guard: Guard) -> None:
        """Have a Secret of an earlier version, with the token of its user, be an empty one: nobody reads those."""
        secrets = self._secrets.within(namespace)
        await secrets.delete(name, guard=guard)
        await secrets.create(secret_body(name, labels, {}), guard=guard)

    async def config_map(
        self, namespace: str, name: str, labels: Mapping[str, str], data: Mapping[str, str], guard: Guard
    ) -> None:
        """Create the ConfigMap, unless there is one."""
        await self._create(self._config_maps, namespace, config_map_body(name, labels, data), guard)

    async def parameters(self, namespace: str, name: str, labels: Mapping[str, str], home: str, guard: Guard) -> None:
        """Create the RoleBinding by which the provider reads ConfigMap and Secret."""
        await self._create(self._bindings, namespace, parameters_body(name, labels, home), guard)

    async def service_account(self, namespace: str, name: str, labels: Mapping[str, str], guard: Guard) -> None:
        """Create the ServiceAccount."""
        await self._create(self._accounts, namespace, service_account_body(name, labels), guard)

    async def role_binding(
        self, namespace: str, name: str, labels: Mapping[str, str], username: str, guard: Guard
    ) -> None:
        """Create the RoleBinding."""
        await self._create(self._bindings, namespace, role_binding_body(name, labels, username), guard)

    async def instructors(self, namespace: str, labels: Mapping[str, str], step: Bind | Unbind, guard: Guard) -> None:
        """Have a lab name the instructors of its class.

        Raises:
            Conflict: The RoleBinding was written since it was seen.
            NotFound: It is gone.
            Fenced: This replica may not write.
        """
        bindings = self._bindings.within(namespace)
        match step:
            case Bind(subjects=subjects, present=RoleBinding(metadata=meta)):
                held: ChangeHow = {"uid": meta.uid, "resource_version": meta.resource_version, "guard": guard}
                await bindings.patch(meta.name, {"subjects": named(subjects)}, **held)
            case Bind(subjects=subjects):
                await bindings.create(instructors_body(labels, subjects), guard=guard)
            case Unbind(present=present):
                await bindings.delete(present.metadata.name, uid=present.metadata.uid, guard=guard)

    async def release(self, namespace: str, guard: Guard) -> None:
        """Delete the RoleBinding of instructors in a lab that is to be of another class, or of none."""
        await self._bindings.within(namespace).delete(BINDING, guard=guard)

    async def clear(self, namespace: str, secret: str, config_map: str, guard: Guard) -> None:
        """Delete the Secret and the ConfigMap of an earlier request."""
        await self._secrets.within(namespace).delete(secret, guard=guard)
        await self._config_maps.within(namespace).delete(config_map, guard=guard)

    async def _create(self, of: Resource[PartialObject], namespace: str, body: Mapping[str, Any], guard: Guard) -> None:
        with suppress(Conflict):
            await of.within(namespace).create(body, guard=guard)


Write = Callable[[], Awaitable[None]]


class LabObjects(NamedTuple):
    """Writes the objects of labs."""

    records: Records
    pods: Pods
    contents: Contents


def lab_objects(ctx: Context, seen: PortalInformers, *, restricted: bool = False) -> LabObjects:
    """Return the writers.

    Args:
        ctx: The replica.
        seen: What is followed; it shows what they write.
        restricted: Whether namespaces take restricted Pods alone.
    """
    return LabObjects(
        Records(ctx, seen.namespaces.wrote, restricted=restricted), Pods(ctx, seen.pods.wrote), Contents(ctx)
    )


class Making:
    """Makes labs."""

    def __init__(
        self,
        ctx: Context,
        pods: Pods,
        username_prefix: str,
        environment: Callable[[str], Mapping[str, str]],
        definition: Callable[[str], CustomResource | None],
    ) -> None:
        """Make none yet.

        Args:
            ctx: The replica; its namespace is the mark.
            pods: Writes the Pods.
            username_prefix: What the usernames of users begin with.
            environment: Returns the variables of a lab of an image that nobody has asked for, the secret ones left out;
                called when a Pod is made.
            definition: Returns a definition by its name, None if there is none; called when a Pod is made.
        """
        self._mark = ctx.namespace
        self._username_prefix = username_prefix
        self._environment = environment
        self._definition = definition
        self._contents = Contents(ctx)
        self._pods = pods

    async def make(self, lab: UserLab, end_at: float | None, guard: Guard) -> None:
        """Make a lab; what is there already is left as it is.

        Args:
            lab: Of a user, or warm.
            end_at: When its time ends, in Unix seconds; None for a warm one.
            guard: Called right before every write.
        """
        namespace, labels, name = lab.record.namespace, self._labels(lab), pod_name(lab.key)
        account = partial(self._contents.service_account, namespace, name, labels, guard)
        await _each([account, *self._variables(lab, labels, guard), *self._around(lab, labels, guard)])
        notes, marked = self._notes(lab, end_at), self._pod_labels(lab, labels)
        image = self._image(lab)
        devices = device_containers(self._definition(tag_of(image)[0]), image)
        request = lab.record.request
        has_secret = request is not None and bool(request.secrets) and not lab.record.warm
        env = env_from(env_name(lab.key), secret_name(lab.key) if has_secret else "")
        await self._pods.create(namespace, name, marked, notes, image, guard, devices, env)

    async def assign(self, lab: UserLab, end_at: float, guard: Guard) -> None:
        """Give a warm lab that was taken for a user to that user.

        Raises:
            Conflict: Its Pod is another one.
            NotFound: Its Pod is gone.
        """
        labels = self._labels(lab)
        await _each(self._around(lab, labels, guard))
        if lab.pod is not None:
            await self._pods.change(lab.pod, self._notes(lab, end_at), guard, self._pod_labels(lab, labels))

    async def look(self, lab: UserLab) -> UserLab:
        """Return a lab with its Pod as the API server has it: the watch may be late."""
        return with_pod(lab, await self._pods.of_lab(lab.record.namespace))

    async def reseal(self, lab: UserLab, guard: Guard) -> None:
        """Take the token of its user from the Secret of a lab."""
        await self._contents.reseal(lab.record.namespace, secret_name(lab.key), self._labels(lab), guard)

    async def is_sealed(self, lab: UserLab, guard: Guard) -> bool:
        """Return whether the request of a lab got its Secret, without which nobody was told that it was accepted."""
        return await self._contents.has_secret(lab.record.namespace, secret_name(lab.key), self._labels(lab), guard)

    def _variables(self, lab: UserLab, labels: Mapping[str, str], guard: Guard) -> list[Write]:
        """Return the writes that let the provider fill in variables.

        The ConfigMap of a user's lab is there already, with what the request brought, unless a replica of an earlier
        version took the request.
        """
        namespace, key, request = lab.record.namespace, lab.key, lab.record.request
        bind = partial(self._contents.parameters, namespace, parameters_name(key), labels, self._mark, guard)
        if request is not None and request.secrets is not None:
            return [bind]
        data = self._environment(self._image(lab))
        return [bind, partial(self._contents.config_map, namespace, env_name(key), labels, data, guard)]

    def _around(self, lab: UserLab, labels: Mapping[str, str], guard: Guard) -> list[Write]:
        """Return the writes of what only the lab of a user has, in any order."""
        if lab.record.warm:
            return []
        namespace, key = lab.record.namespace, lab.key
        username = username_of(lab.user, self._username_prefix)
        return [partial(self._contents.role_binding, namespace, binding_name(key), labels, username, guard)]

    def _labels(self, lab: UserLab) -> dict[str, str]:
        if lab.record.warm:
            return warm_labels_for(self._mark, lab.record.family)
        return labels_for(self._mark, lab.user, class_=lab.record.class_)

    def _image(self, lab: UserLab) -> str:
        request = lab.record.request
        return request.definition if request is not None else ""

    def _pod_labels(self, lab: UserLab, labels: Mapping[str, str]) -> dict[str, str]:
        request = lab.record.request
        return {**labels, **({portalnames.LABEL_REQUEST: request.id} if request is not None else {})}

    def _notes(self, lab: UserLab, end_at: float | None) -> dict[str, str]:
        learner = {names.ANNOTATION_USERNAME: learner_of(lab.user)} if lab.user else {}
        if lab.user:
            learner[names.ANNOTATION_OWNER] = username_of(lab.user, self._username_prefix)
        if lab.record.request is not None and (saved := lab.record.request.options.get("begin_from")):
            learner[names.ANNOTATION_BEGIN_FROM] = str(saved)
        return learner | ({names.ANNOTATION_TIMESLOT_END: iso(int(end_at))} if end_at is not None else {})


async def _each(writes: Sequence[Write]) -> None:
    """Carry out writes, all at once."""
    await at_most(len(writes), lambda write: write(), writes)
