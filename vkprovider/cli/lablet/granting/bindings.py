"""The bindings that make a user an instructor of a namespace, and who may be one; without I/O."""

import re
from collections.abc import Mapping
from typing import Any, Final, Literal

import click
import msgspec

from vkprovider.cli.shared.page.address import Binding, anchored
from vkprovider.doctor.rights import INSTRUCTOR, INSTRUCTOR_DEFINITIONS
from vkprovider.lablet import names
from vkprovider.platform import wellknown

_RUNS: Final = "vkprovider-lablet-user"
_READS: Final = "vkprovider-topology-reader"
GROUP: Final = "rbac.authorization.k8s.io"
_NAME_CHARS_MAX: Final = 256
_NAMESPACE: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_ACCOUNT: Final = re.compile(r"system:serviceaccount:([a-z0-9-]+):([a-z0-9.-]+)")
_ACCOUNTS: Final = re.compile(r"system:serviceaccounts:[a-z0-9-]+")
_IN_NO_NAME: Final = re.compile(r"[/%]")
"""The characters that names of RBAC objects do not have."""

_LEVEL: Final = "pod-security.kubernetes.io/enforce"
_LEVELS: Final = ("baseline", "restricted")

Standing = Literal["missing", "incomplete", "outdated", "there"]


class Subject(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Whom a binding names."""

    kind: str
    name: str
    api_group: str = ""
    namespace: str = ""

    @property
    def text(self) -> str:
        """The subject within the name of a binding."""
        if self.kind == "ServiceAccount":
            return f"system:serviceaccount:{self.namespace}:{self.name}"
        return _IN_NO_NAME.sub("-", f"group:{self.name}" if self.kind == "Group" else self.name)


class Bound(Binding, frozen=True, rename="camel"):
    """A binding, as it was read."""

    subjects: list[Subject] = msgspec.field(default_factory=list)


class Grant(msgspec.Struct, frozen=True):
    """A binding that there is to be.

    Attributes:
        namespace: Empty for a ClusterRoleBinding.
        role: The ClusterRole.
        subject: None for the one that carries the address of the page, which is the same for every user.
        means: What the subject may do then.
        page: The address of the page; "" for a binding that does not carry it.
    """

    name: str
    namespace: str
    role: str
    subject: Subject | None
    means: str
    page: str = ""

    @property
    def about(self) -> str:
        """Kind and name, as kubectl prints them."""
        return f"rolebinding/{self.name}" if self.namespace else f"clusterrolebinding/{self.name}"

    def body(self) -> dict[str, Any]:
        """Return the manifest."""
        place = {"namespace": self.namespace} if self.namespace else {}
        notes = {"annotations": {names.ANNOTATION_PAGE_URL: self.page}} if self.page else {}
        return {
            "apiVersion": f"{GROUP}/v1",
            "kind": "RoleBinding" if self.namespace else "ClusterRoleBinding",
            "metadata": {"name": self.name, **place, **notes},
            "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": self.role},
            "subjects": [msgspec.to_builtins(self.subject)] if self.subject else [],
        }

    def standing(self, found: Bound | None) -> Standing:
        """Compare this binding with the one of that name in the cluster.

        Raises:
            ClickException: It binds something else; that cannot be changed.
        """
        if found is None:
            return "missing"
        if (found.role_ref.kind, found.role_ref.name) != ("ClusterRole", self.role):
            place = f" -n {self.namespace}" if self.namespace else ""
            raise click.ClickException(
                f"{self.about} binds {found.role_ref.kind} {found.role_ref.name}, not ClusterRole {self.role}: make a "
                f"binding of another name for that, and remove this one: kubectl delete {self.about}{place}"
            )
        if self.page and anchored(found) != self.page:
            return "outdated"
        return "there" if self.subject is None or self.subject in found.subjects else "incomplete"


def subject_of(user: str, *, group: bool) -> Subject:
    """Return the subject that a command line names.

    Raises:
        UsageError: It is nobody, or everybody.
    """
    what, name = ("group" if group else "user"), user.strip()
    if not name:
        raise click.UsageError(f"USER is empty; write the {what} as the API server knows it: kubectl auth whoami")
    if len(name) > _NAME_CHARS_MAX or not name.isprintable():
        raise click.UsageError(f"USER is not a name of at most {_NAME_CHARS_MAX} printable characters")
    if account := _ACCOUNT.fullmatch(name):
        if group:
            raise click.UsageError(f"{name} is a ServiceAccount, not a group; leave out --group")
        return Subject("ServiceAccount", account[2], namespace=account[1])
    if name.startswith("system:") and not (group and _ACCOUNTS.fullmatch(name)):
        raise click.UsageError(
            f"{name} is not an instructor but a {what} of Kubernetes itself; name a person, a group of your own with "
            "--group, or a ServiceAccount as system:serviceaccount:NAMESPACE:NAME"
        )
    return Subject("Group" if group else "User", name, GROUP)


def namespace_of(namespace: str | None, provider_namespace: str) -> str:
    """Return the namespace of the class.

    Raises:
        UsageError: It is not named, or not one for a class.
    """
    if namespace is None:
        raise click.UsageError("name the namespace of the class: -n NAMESPACE")
    if not _NAMESPACE.fullmatch(namespace):
        raise click.UsageError(f"{namespace!r} cannot be the name of a namespace")
    is_providers = namespace in {provider_namespace, wellknown.logins_namespace(provider_namespace)}
    if is_providers or namespace.startswith("kube-"):
        whose = "the provider" if is_providers else "Kubernetes"
        raise click.UsageError(
            f"{namespace} is a namespace of {whose}: who may read its objects is an administrator. Make one for the "
            "class: kubectl create namespace NAME"
        )
    return namespace


def grants(subject: Subject, namespace: str, provider_namespace: str) -> list[Grant]:
    """Return the bindings that make a subject an instructor of a namespace."""
    lablets = Subject("ServiceAccount", "default", namespace=namespace)
    provider = Subject("ServiceAccount", wellknown.SERVICE_ACCOUNT, namespace=provider_namespace)
    who = subject.text
    return [
        Grant(f"{INSTRUCTOR}:{who}", namespace, INSTRUCTOR, subject, f"{who} runs the lablets of {namespace}"),
        Grant(
            f"{INSTRUCTOR_DEFINITIONS}:{who}",
            "",
            INSTRUCTOR_DEFINITIONS,
            subject,
            f"{who} writes the definitions of {namespace}",
        ),
        Grant("lablets", namespace, _RUNS, lablets, f"Pods of {namespace} may be lablets"),
        Grant(
            "vkprovider-topologies",
            namespace,
            _READS,
            provider,
            f"the provider reads the topologies of {namespace} in its ConfigMaps",
        ),
    ]


def page_of(namespace: str, page: str, before: str = "") -> list[Grant]:
    """Return the binding that carries the address of the page; none without one.

    It has the role, and binds nobody: so only who may give the role may write the address, to which tokens are sent.

    Args:
        namespace: That of the class.
        page: The address.
        before: The address until now; "" if there is none.
    """
    was = f", until now at {before}" if before and before != page else ""
    means = f"instructors of {namespace} send their tokens to the provider's page at {page}{was}"
    return [Grant(INSTRUCTOR, namespace, INSTRUCTOR, None, means, page)] if page else []


def warning_of(namespace: str, labels: Mapping[str, str]) -> str:
    """Return a warning of the Pods that an instructor may make; "" if a Pod Security level limits them."""
    if labels.get(_LEVEL) in _LEVELS:
        return ""
    return (
        f"WARNING: namespace {namespace} enforces neither the Pod Security level baseline nor restricted, so who may "
        "create Pods there, as an instructor may, can make privileged ones, which take over the nodes they run on. "
        f"Set it: kubectl label namespace {namespace} {_LEVEL}=baseline --overwrite"
    )
