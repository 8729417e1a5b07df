"""Who asks, and a right in the cluster: a verb on a resource, or on a path, as an access review names it."""

import shlex
from typing import Any, Self

import msgspec

from vkprovider.platform import wellknown


class User(msgspec.Struct, frozen=True):
    """A user of the cluster, as the API server reports it."""

    username: str = ""
    uid: str = ""
    groups: list[str] = []
    extra: dict[str, list[str]] = {}

    @classmethod
    def of_account(cls, namespace: str, name: str) -> Self:
        """Return the user that a ServiceAccount is."""
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
        return cls(f"{wellknown.ACCOUNT_USERNAME}{namespace}:{name}", groups=groups)

    def spec(self) -> dict[str, Any]:
        """Return it as a part of the spec of a SubjectAccessReview."""
        found = msgspec.to_builtins(self)
        found["user"] = found.pop("username")
        return {key: value for key, value in found.items() if value}


class Right(msgspec.Struct, frozen=True):
    """A right of a user in the cluster; its text completes `user X may not …`.

    Attributes:
        verb: Any, also one that no API has, such as `teach`.
        resource: With its subresource: `pods/exec`; or a path, such as `/info`, which is of no namespace.
        namespace: Empty: in all namespaces, or for what has none.
        name: Empty: every object.
        group: Of the resource; empty: the core.
        version: Of the group, for authorizers that ask.
        role: The shipped ClusterRole that stands for it; "" if there is none, or refusals are not to name it.
        of: What refusals say of its object, such as `the namespace`; a user need not learn whose lab it is.
    """

    verb: str
    resource: str
    namespace: str = ""
    name: str = ""
    group: str = ""
    version: str = "v1"
    role: str = ""
    of: str = ""

    @property
    def is_namespaced(self) -> bool:
        """Whether a RoleBinding in a namespace suffices."""
        return bool(self.namespace)

    def attributes(self) -> dict[str, Any]:
        """Return it as a part of the spec of a SubjectAccessReview."""
        if self.resource.startswith("/"):
            return {"nonResourceAttributes": {"path": self.resource, "verb": self.verb}}
        resource, _, subresource = self.resource.partition("/")
        found = {
            "verb": self.verb,
            "group": self.group,
            "version": self.version,
            "resource": resource,
            "subresource": subresource,
            "namespace": self.namespace,
            "name": self.name,
        }
        return {"resourceAttributes": {key: text for key, text in found.items() if text}}

    def __str__(self) -> str:
        if self.resource.startswith("/"):
            return f"{self.verb} the non-resource URL {self.resource}"
        resource, slash, subresource = self.resource.partition("/")
        named = f"{self.verb} {resource}{f'.{self.group}' if self.group else ''}{slash}{subresource}"
        return f"{named} of {self.of}" if self.of else named


def refusal(user: User, right: Right) -> str:
    """Return that a user lacks a right, with the command by which an administrator grants it; no Pod is named."""
    lacks = f"user {user.username!r} may not {right}"
    if not right.role:
        return f"{lacks}; bind a ClusterRole that grants it"
    binding = "-n NAMESPACE create rolebinding" if right.is_namespaced else "create clusterrolebinding"
    account = user.username.removeprefix(wellknown.ACCOUNT_USERNAME)
    is_account = account != user.username
    subject = f"--serviceaccount={shlex.quote(account)}" if is_account else f"--user={shlex.quote(user.username)}"
    command = f"kubectl {binding} {right.role} --clusterrole={right.role} {subject}"
    return f"{lacks}; an administrator may allow it: {command}"
