"""People who ask the portal: ServiceAccounts with tokens of the cluster, and the roles that are bound to them."""

import itertools
from typing import Final

from tests.component.controllers.looking import eventually
from tests.support.apiserver import SYSTEM, Admin
from vkprovider.platform import wellknown

RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
HUB_ROLE, USER_ROLE = "vkprovider-portal-hub", "vkprovider-portal-user"
INSTRUCTOR_ROLE: Final = "vkprovider-instructor"
LEARNER_ROLE: Final = "vkprovider-class-learner"
_VERBS: Final = {HUB_ROLE: "manage", USER_ROLE: "use", INSTRUCTOR_ROLE: "teach", LEARNER_ROLE: "attend"}
_runs = itertools.count(1)


class People:
    """The people of one test.

    Attributes:
        namespace: Where their accounts are.
        prefix: What their usernames begin with.
    """

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self.namespace = f"people-{next(_runs)}"
        self.prefix = f"system:serviceaccount:{self.namespace}:"
        self._bindings: set[str] = set()

    async def open(self) -> None:
        """Make room for accounts."""
        await self._admin.create("/api/v1/namespaces", {"metadata": {"name": self.namespace}})

    async def person(self, name: str, *roles: str) -> dict[str, str]:
        """Make somebody with these ClusterRoles in the portal's namespace; return the header of their requests."""
        accounts = f"/api/v1/namespaces/{self.namespace}/serviceaccounts"
        await self._admin.create(accounts, {"metadata": {"name": name}})
        for role in roles:
            await self.allow(name, role)
        made = await self._admin.create(f"{accounts}/{name}/token", {"spec": {"expirationSeconds": 3600}})
        return {"Authorization": f"Bearer {made['status']['token']}"}

    async def allow(self, name: str, role: str, namespace: str = SYSTEM) -> str:
        """Bind a ClusterRole to somebody in a namespace, wait until it counts, and return the path of the binding."""
        path = f"{RBAC}/namespaces/{namespace}/rolebindings"
        bound = f"{self.namespace}-{name}-{role}"
        body = {
            "metadata": {"name": bound},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": self.namespace}],
        }
        await self._admin.create(path, body)
        self._bindings.add(f"{path}/{bound}")
        user, verb = f"{self.prefix}{name}", _VERBS[role]
        await eventually(
            lambda: self._admin.may(user, verb, "userlabs", namespace, group=wellknown.GROUP), f"{name} may {verb}"
        )
        return f"{path}/{bound}"

    async def allow_group(self, group: str, role: str, namespace: str = SYSTEM) -> str:
        """Bind a ClusterRole to a group in a namespace, and wait until it counts; return the group."""
        path = f"{RBAC}/namespaces/{namespace}/rolebindings"
        body = {
            "metadata": {"name": group},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "Group", "name": group, "apiGroup": "rbac.authorization.k8s.io"}],
        }
        await self._admin.create(path, body)
        self._bindings.add(f"{path}/{group}")
        verb = _VERBS[role]
        await eventually(
            lambda: self._admin.may("x", verb, "userlabs", namespace, group=wellknown.GROUP, groups=[group]),
            f"{group} may",
        )
        return group

    async def close(self) -> None:
        """Take all roles away."""
        for binding in self._bindings:
            await self._admin.delete(binding)
