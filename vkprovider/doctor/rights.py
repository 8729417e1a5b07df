"""The rights in the shipped manifests, one by one: the provider's of `rbac.yaml`, and those of the roles of users."""

import shlex
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import yaml

from vkprovider.lablet import names
from vkprovider.platform import wellknown
from vkprovider.platform.rights import Right

SHIPPED_NAMESPACE: Final = "vkprovider-system"
"""The namespace of the provider in the shipped manifests."""
INSTRUCTOR: Final = names.ROLE_INSTRUCTOR
"""The ClusterRole of an instructor, bound in the namespace of the class."""
INSTRUCTOR_DEFINITIONS: Final = "vkprovider-instructor-definitions"
"""The ClusterRole of an instructor, bound cluster-wide."""


class CheckedRight(NamedTuple):
    """One verb on one resource.

    Attributes:
        resource: With its subresource: `nodes/status`.
        namespace: Empty: in all namespaces.
        name: Empty: every object.
    """

    verb: str
    group: str
    resource: str
    namespace: str = ""
    name: str = ""

    @property
    def qualified(self) -> str:
        """The resource, as `kubectl auth can-i` writes it: `deployments.apps/scale`."""
        resource, _, subresource = self.resource.partition("/")
        text = f"{resource}.{self.group}" if self.group else resource
        return f"{text}/{subresource}" if subresource else text

    @property
    def what(self) -> str:
        """The resource, which object, and where."""
        text = f"{self.qualified} {self.name}" if self.name else self.qualified
        return f"{text} in {self.namespace}" if self.namespace else text

    def attributes(self) -> dict[str, Any]:
        """Return it as a part of the spec of an access review."""
        return Right(self.verb, self.resource, self.namespace, self.name, self.group, version="").attributes()


def grant_command(user: str, namespace: str) -> str:
    """Return the command by which an admin makes a user an instructor."""
    return f"kubectl lablet grant {shlex.quote(user)} -n {namespace}"


def by_what(rights: Iterable[CheckedRight]) -> dict[str, str]:
    """Return the verbs of rights by their resource, in order: `{"pods": "get, list"}`."""
    verbs: dict[str, list[str]] = {}
    for right in rights:
        verbs.setdefault(right.what, []).append(right.verb)
    return {what: ", ".join(found) for what, found in verbs.items()}


def rights_of(manifest: str, namespace: str, logins: str = "") -> list[CheckedRight]:
    """Return the rights that the shipped bindings grant to the ServiceAccount.

    Args:
        manifest: The text of `rbac.yaml`.
        namespace: Where the provider runs.
        logins: Where the logins of workers and devices are; "" for the usual namespace.
    """
    documents = [document for document in yaml.safe_load_all(manifest) if document]
    bound = {
        (d["roleRef"]["kind"], d["roleRef"]["name"], d["metadata"].get("namespace", ""))
        for d in documents
        if d["kind"] in {"ClusterRoleBinding", "RoleBinding"}
    }
    found: dict[CheckedRight, None] = {}
    for document in documents:
        meta = document["metadata"]
        where = meta.get("namespace", "")
        if (document["kind"], meta["name"], where) in bound:
            for right in rights_in(document, _moved(where, namespace, logins)):
                found[right] = None
    return list(found)


def _moved(shipped: str, namespace: str, logins: str) -> str:
    """Return the namespace that stands for one of the shipped manifests."""
    places = {
        SHIPPED_NAMESPACE: namespace,
        wellknown.logins_namespace(SHIPPED_NAMESPACE): logins or wellknown.logins_namespace(namespace),
    }
    return places.get(shipped, shipped)


def rights_in(role: dict[str, Any], namespace: str = "") -> Iterator[CheckedRight]:
    """Yield the rights of a Role, or of a ClusterRole, bound in a namespace; empty: in all."""
    for rule in role["rules"]:
        for group in rule.get("apiGroups", ()):  # none where a rule is about paths of the page
            for resource in rule["resources"]:
                for verb in rule["verbs"]:
                    for name in rule.get("resourceNames", [""]):
                        yield CheckedRight(verb, group, resource, namespace, name)


def roles_with(manifest: str, right: CheckedRight) -> list[str]:
    """Return the names of the ClusterRoles that give a right where they are bound.

    Args:
        manifest: The text of `roles.yaml`.
        right: On every object, or on one; in which namespace does not count.
    """
    documents = [document for document in yaml.safe_load_all(manifest) if document]
    wanted = {right._replace(namespace=""), right._replace(namespace="", name="")}
    return [document["metadata"]["name"] for document in documents if not wanted.isdisjoint(rights_in(document))]
