"""Rights that the page asks for: on lablets, which are no resource of the API server, and on its own paths."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

import msgspec

from vkprovider.platform import wellknown

Age = Callable[[str], Awaitable[str]]
"""Returns when a namespace was created, as Kubernetes writes it; empty if it does not exist."""


async def begun(age: Age, namespace: str) -> float:
    """Return the creation time of a namespace, 0 without one: rights in it are not those in one that is gone."""
    created = await age(namespace)
    return datetime.fromisoformat(created).timestamp() if created else 0.0


class PageResource(msgspec.Struct, frozen=True):
    """A right on a lablet: `verb` on `lablets/<subresource>` of our group, in a namespace, on a name.

    Without a name it is the right on all lablets of the namespace.
    """

    subresource: str
    namespace: str
    name: str = ""
    verb: str = "get"

    @property
    def role(self) -> str:
        """The ClusterRole that grants it, in one namespace."""
        return f"{wellknown.MANAGER}-{self.subresource}"

    @property
    def is_namespaced(self) -> bool:
        """A RoleBinding suffices."""
        return True

    def attributes(self) -> dict[str, Any]:
        """Return it as the spec of a SubjectAccessReview."""
        named = {"name": self.name} if self.name else {}
        return {
            "resourceAttributes": {
                "group": wellknown.GROUP,
                "version": wellknown.VERSION,
                "resource": "lablets",
                "subresource": self.subresource,
                "namespace": self.namespace,
                "verb": self.verb,
                **named,
            }
        }

    def __str__(self) -> str:
        """Describe the right without the Pod: a user who lacks it need not learn whose lab it is."""
        of = "the Pod that has this lab" if self.name else "the namespace"
        return f"{self.verb} lablets.{wellknown.GROUP}/{self.subresource} of {of}"


class Path(msgspec.Struct, frozen=True):
    """A right on a path of our page, as a non-resource URL."""

    path: str
    verb: str

    @property
    def role(self) -> str:
        """The ClusterRole that grants it."""
        return f"{wellknown.MANAGER}-{'view' if self.verb == 'get' else 'worker-admin'}"

    @property
    def is_namespaced(self) -> bool:
        """It takes a ClusterRoleBinding."""
        return False

    def attributes(self) -> dict[str, Any]:
        """Return it as the spec of a SubjectAccessReview."""
        return {"nonResourceAttributes": {"path": self.path, "verb": self.verb}}

    def __str__(self) -> str:
        return f"{self.verb} the non-resource URL {self.path}"
