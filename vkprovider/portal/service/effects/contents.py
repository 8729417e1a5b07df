"""What stands in the namespace of a user lab beside the Pod. What is there already is left as it is."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec

from vkprovider.platform.errors import Conflict
from vkprovider.platform.kube.api import CONFIG_MAPS, SECRETS
from vkprovider.platform.kube.client import Guard
from vkprovider.platform.kube.resources import ChangeHow, PartialObject, Resource, kind
from vkprovider.platform.objects import RoleBinding
from vkprovider.platform.runtime.context import Context
from vkprovider.portal.pure.instructors import BINDING, Bind, Unbind
from vkprovider.portal.service.effects import objects

_ACCOUNTS: Final = kind("/api/v1", "serviceaccounts", PartialObject)
_BINDINGS: Final = kind("/apis/rbac.authorization.k8s.io/v1", "rolebindings", PartialObject)


class Contents:
    """Writes Secrets, ConfigMaps, ServiceAccounts and RoleBindings."""

    def __init__(self, ctx: Context) -> None:
        """Write nothing yet."""
        self._kube = ctx.kube
        self._secrets = Resource(ctx.kube, SECRETS).metadata_only
        self._config_maps = Resource(ctx.kube, CONFIG_MAPS).metadata_only
        self._accounts = Resource(ctx.kube, _ACCOUNTS).metadata_only
        self._bindings = Resource(ctx.kube, _BINDINGS).metadata_only

    async def secret(
        self, namespace: str, name: str, labels: Mapping[str, str], token: str, env: Mapping[str, str], guard: Guard
    ) -> None:
        """Create the Secret.

        Raises:
            Conflict: There is one.
            Fenced: The lock is not held any more.
            OutsideError: The API server refused or did not answer.
        """
        await self._secrets.within(namespace).create(objects.secret(name, labels, token, env), guard=guard)

    async def has_secret(self, namespace: str, name: str, labels: Mapping[str, str], guard: Guard) -> bool:
        """Return whether the Secret is there: the portal cannot read Secrets, so it tries, without a trace, to make it.

        Raises:
            Fenced: The lock is not held any more.
            OutsideError: The API server refused or did not answer.
        """
        body = msgspec.json.encode(objects.secret(name, labels, "", {}))
        path = self._secrets.within(namespace).path
        try:
            await self._kube.create(path, body, params={"dryRun": "All"}, guard=guard, brief=True)
        except Conflict:
            return True
        return False

    async def config_map(
        self, namespace: str, name: str, labels: Mapping[str, str], data: Mapping[str, str], guard: Guard
    ) -> None:
        """Create the ConfigMap.

        Raises:
            Fenced: The lock is not held any more.
            OutsideError: The API server refused or did not answer.
        """
        await self._create(self._config_maps, namespace, objects.config_map(name, labels, data), guard)

    async def service_account(self, namespace: str, name: str, labels: Mapping[str, str], guard: Guard) -> None:
        """Create the ServiceAccount.

        Raises:
            Fenced: The lock is not held any more.
            OutsideError: The API server refused or did not answer.
        """
        await self._create(self._accounts, namespace, objects.service_account(name, labels), guard)

    async def role_binding(
        self, namespace: str, name: str, labels: Mapping[str, str], username: str, guard: Guard
    ) -> None:
        """Create the RoleBinding.

        Raises:
            Fenced: The lock is not held any more.
            OutsideError: The API server refused or did not answer.
        """
        await self._create(self._bindings, namespace, objects.role_binding(name, labels, username), guard)

    async def instructors(self, namespace: str, labels: Mapping[str, str], step: Bind | Unbind, guard: Guard) -> None:
        """Have a lab name the instructors of its class.

        Raises:
            Conflict: The RoleBinding was written since it was seen.
            NotFound: It is gone.
            Fenced: This replica may not write.
            OutsideError: The API server refused or did not answer.
        """
        bindings = self._bindings.within(namespace)
        match step:
            case Bind(subjects=subjects, present=RoleBinding(metadata=meta)):
                held: ChangeHow = {"uid": meta.uid, "resource_version": meta.resource_version, "guard": guard}
                await bindings.patch(meta.name, {"subjects": objects.named(subjects)}, **held)
            case Bind(subjects=subjects):
                await bindings.create(objects.instructors_binding(labels, subjects), guard=guard)
            case Unbind(present=present):
                await bindings.delete(present.metadata.name, uid=present.metadata.uid, guard=guard)

    async def release(self, namespace: str, guard: Guard) -> None:
        """Delete the RoleBinding of instructors in a lab that is to be of another class, or of none.

        Raises:
            Fenced: The lock is not held any more.
            OutsideError: The API server refused or did not answer.
        """
        await self._bindings.within(namespace).delete(BINDING, guard=guard)

    async def clear(self, namespace: str, secret: str, config_map: str, guard: Guard) -> None:
        """Delete the Secret and the ConfigMap of an earlier request.

        Raises:
            Fenced: The lock is not held any more.
            OutsideError: The API server refused or did not answer.
        """
        await self._secrets.within(namespace).delete(secret, guard=guard)
        await self._config_maps.within(namespace).delete(config_map, guard=guard)

    async def _create(self, of: Resource[PartialObject], namespace: str, body: Mapping[str, Any], guard: Guard) -> None:
        with suppress(Conflict):
            await of.within(namespace).create(body, guard=guard)
