"""Whose the lablets of classes are: kept up to date by informers, so that to look costs no request."""

import asyncio
from collections.abc import Collection, Iterable
from contextlib import AbstractAsyncContextManager

from vkprovider.lablet import names
from vkprovider.platform.objects import Pod, RoleBinding
from vkprovider.portal.pure.given import OpenedLablet, admits, opened_by
from vkprovider.portal.pure.leading import names_somebody
from vkprovider.portal.service.index import Listeners
from vkprovider.portal.service.informers import OtherLablets


class LabletLearners:
    """The lablets that people have, and the classes that they attend."""

    def __init__(self, lablets: OtherLablets) -> None:
        """Know none; `lablets` knows the Pods."""
        self._lablets = lablets
        self._opened: dict[str, dict[tuple[str, str], OpenedLablet]] = {}
        self._admitting: dict[str, dict[str, RoleBinding]] = {}
        self._listeners: Listeners[str] = Listeners()

    def __len__(self) -> int:
        """Count those to whom a lablet is opened."""
        return len(self._opened)

    def binding_changed(self, old: RoleBinding | None, new: RoleBinding | None) -> None:
        """Note a RoleBinding, and tell those whom it names, or named."""
        for binding, is_there in ((old, False), (new, True)):
            if binding is None:
                continue
            if (opened := opened_by(binding)) is not None:
                for user in binding.usernames:
                    self._note(user, binding, opened, is_there=is_there)
            if binding.binds(names.ROLE_CLASS_LEARNER):
                self._admit(binding, is_there=is_there)

    def attended_by(self, username: str, groups: Iterable[str]) -> list[str]:
        """Return the classes whose RoleBindings make somebody a learner, or one of their groups; by name."""
        its = set(groups)
        return sorted(
            {
                namespace
                for namespace, bindings in self._admitting.items()
                for binding in bindings.values()
                if any(names_somebody(subject, username, its) for subject in binding.subjects or ())
            }
        )

    def lablets_of(self, username: str, learners: Collection[str], classes: Collection[str]) -> list[Pod]:
        """Return the lablets that somebody has, or is a guest of, by namespace and name.

        Args:
            username: Theirs, of the cluster: what `assign` has opened to it.
            learners: The names by which Pods may call them.
            classes: Those that they attend, where a Pod that names them is theirs without more.
        """
        found: dict[tuple[str, str], Pod] = {}
        for opened in self._opened.get(username, {}).values():
            pod = self._lablets.pod(opened.namespace, opened.pod)
            if pod is not None and pod.metadata.uid == opened.uid:
                found[opened.namespace, opened.pod] = pod
        for learner in learners:
            for pod in self._lablets.of_learner(learner):
                if pod.metadata.namespace in classes:
                    found[pod.metadata.namespace, pod.metadata.name] = pod
        return [pod for _, pod in sorted(found.items()) if admits(pod, learners)]

    def listen(self, username: str) -> AbstractAsyncContextManager[asyncio.Event]:
        """Yield an event that is set whenever a lablet was opened to somebody, or closed; the caller clears it."""
        return self._listeners.listen(username)

    def _note(self, user: str, binding: RoleBinding, opened: OpenedLablet, *, is_there: bool) -> None:
        key = binding.metadata.namespace, binding.metadata.name
        its = self._opened.setdefault(user, {})
        if is_there:
            its[key] = opened
        else:
            its.pop(key, None)
        if not its:
            del self._opened[user]
        self._listeners.tell(user)

    def _admit(self, binding: RoleBinding, *, is_there: bool) -> None:
        meta = binding.metadata
        its = self._admitting.setdefault(meta.namespace, {})
        if is_there:
            its[meta.name] = binding
        else:
            its.pop(meta.name, None)
        if not its:
            del self._admitting[meta.namespace]
