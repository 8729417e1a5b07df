"""How a lab is made: everything that stands in its namespace but the Secret, the Pod last.

`LabObjects` writes Namespaces and Pods, and shows what it has written until the watches do.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import msgspec

from vkprovider.lablet import names
from vkprovider.lablet.inputs import tag_of
from vkprovider.platform.concurrency import at_most
from vkprovider.platform.kube.client import Guard
from vkprovider.platform.objects import CustomResource
from vkprovider.platform.runtime.context import Context
from vkprovider.platform.times import iso
from vkprovider.portal.pure import portalnames
from vkprovider.portal.pure.facts import UserLab
from vkprovider.portal.pure.names import binding_name, env_name, learner_of, pod_name, secret_name, username_of
from vkprovider.portal.pure.record import labels_for, warm_labels_for
from vkprovider.portal.service.effects.contents import Contents
from vkprovider.portal.service.effects.objects import device_containers
from vkprovider.portal.service.effects.pods import Pods
from vkprovider.portal.service.effects.records import Records
from vkprovider.portal.service.index import with_pod
from vkprovider.portal.service.informers import Informers

Write = Callable[[], Awaitable[None]]


class LabObjects(NamedTuple):
    """Writes the objects of labs."""

    records: Records
    pods: Pods


def lab_objects(ctx: Context, seen: Informers) -> LabObjects:
    """Return the writers.

    Args:
        ctx: The replica.
        seen: What is followed; it shows what they write.
    """
    return LabObjects(Records(ctx, seen.namespaces.wrote), Pods(ctx, seen.pods.wrote))


class Making:
    """Makes labs."""

    def __init__(
        self,
        ctx: Context,
        pods: Pods,
        username_prefix: str,
        env: Mapping[str, str],
        definition: Callable[[str], CustomResource | None],
    ) -> None:
        """Make none yet.

        Args:
            ctx: The replica; its namespace is the mark.
            pods: Writes the Pods.
            username_prefix: What the usernames of users begin with.
            env: The environment of every lab.
            definition: Returns a definition by its name, None if there is none; called when a Pod is made.
        """
        self._mark = ctx.namespace
        self._username_prefix = username_prefix
        self._env = env
        self._definition = definition
        self._contents = Contents(ctx)
        self._pods = pods

    async def make(self, lab: UserLab, end_at: float | None, guard: Guard) -> None:
        """Make a lab; what is there already is left as it is.

        Args:
            lab: Of a user, or warm.
            end_at: When its time ends, in Unix seconds; None for a warm one.
            guard: Called right before every write.

        Raises:
            Fenced: The lock is not held any more.
            OutsideError: The API server refused or did not answer.
        """
        namespace, labels, name = lab.record.namespace, self._labels(lab), pod_name(lab.key)
        account = partial(self._contents.service_account, namespace, name, labels, guard)
        await _each([account, *self._around(lab, labels, guard)])
        notes, marked = self._notes(lab, end_at), self._pod_labels(lab, labels)
        image = self._image(lab)
        devices = device_containers(self._definition(tag_of(image)[0]), image)
        await self._pods.create(namespace, name, marked, notes, image, guard, devices)

    async def assign(self, lab: UserLab, end_at: float, guard: Guard) -> None:
        """Give a warm lab that was taken for a user to that user.

        Raises:
            Conflict: Its Pod is another one.
            NotFound: Its Pod is gone.
            Fenced: The lock is not held any more.
            OutsideError: The API server refused or did not answer.
        """
        labels = self._labels(lab)
        await _each(self._around(lab, labels, guard))
        if lab.pod is not None:
            await self._pods.change(lab.pod, self._notes(lab, end_at), guard, self._pod_labels(lab, labels))

    async def look(self, lab: UserLab) -> UserLab:
        """Return a lab with its Pod as the API server has it: the watch may be late.

        Raises:
            OutsideError: The API server refused or did not answer.
        """
        return with_pod(lab, await self._pods.of_lab(lab.record.namespace))

    async def is_sealed(self, lab: UserLab, guard: Guard) -> bool:
        """Return whether the request of a lab got its Secret, without which nobody was told that it was accepted.

        Raises:
            Fenced: The lock is not held any more.
            OutsideError: The API server refused or did not answer.
        """
        return await self._contents.has_secret(lab.record.namespace, secret_name(lab.key), self._labels(lab), guard)

    def _around(self, lab: UserLab, labels: Mapping[str, str], guard: Guard) -> list[Write]:
        """Return the writes of what only the lab of a user has, in any order."""
        if lab.record.warm:
            return []
        namespace, key = lab.record.namespace, lab.key
        username = username_of(lab.user, self._username_prefix)
        return [
            partial(self._contents.config_map, namespace, env_name(key), labels, self._environment(lab), guard),
            partial(self._contents.role_binding, namespace, binding_name(key), labels, username, guard),
        ]

    def _environment(self, lab: UserLab) -> dict[str, str]:
        request = lab.record.request
        if request is None:
            return dict(self._env)
        own = {"IMAGE_DESCRIPTION": request.definition, "LAB_OPTIONS": msgspec.json.encode(request.options).decode()}
        return {**own, **self._env}

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
        return learner | ({names.ANNOTATION_TIMESLOT_END: iso(int(end_at))} if end_at is not None else {})


async def _each(writes: Sequence[Write]) -> None:
    """Carry out writes, all at once."""
    await at_most(len(writes), lambda write: write(), writes)
