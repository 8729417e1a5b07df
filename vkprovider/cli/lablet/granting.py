"""`kubectl lablet grant` and `approve`: instructors of a namespace, and workers that agents have brought."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import click
import msgspec
import yaml

from vkprovider.classroom.deployments import DEPLOYMENTS
from vkprovider.cli.shared.output import document
from vkprovider.cli.shared.page.address import granted, safe, shown
from vkprovider.cli.shared.place import Place
from vkprovider.doctor.rights import INSTRUCTOR, INSTRUCTOR_DEFINITIONS
from vkprovider.lablet import names
from vkprovider.platform import wellknown
from vkprovider.platform.errors import NotFound
from vkprovider.platform.kube.api import NAMESPACES, WORKERS
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.resources import PartialObject, Resource, kind
from vkprovider.platform.objects import RoleBinding, Subject
from vkprovider.portal.pure import portalnames

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


class Grant(msgspec.Struct, frozen=True):
    """A binding that there is to be.

    Attributes:
        namespace: Empty for a ClusterRoleBinding.
        role: The ClusterRole.
        subject: None for the one that carries the address of the page, which is the same for every user.
        means: What the subject may do then.
        page: The address of the page; "" for a binding that does not carry it.
        prefix: What the usernames of learners begin with; None leaves what is there.
        image: Of the installation, for Jobs of the class; "" leaves what is there.
    """

    name: str
    namespace: str
    role: str
    subject: Subject | None
    means: str
    page: str = ""
    prefix: str | None = None
    image: str = ""

    @property
    def notes(self) -> dict[str, str | None]:
        """The annotations that it is to have; None removes one."""
        said = {names.ANNOTATION_PAGE_URL: self.page, names.ANNOTATION_IMAGE: self.image}
        notes: dict[str, str | None] = {name: text for name, text in said.items() if text}
        return notes if self.prefix is None else {**notes, names.ANNOTATION_USERNAME_PREFIX: self.prefix or None}

    @property
    def about(self) -> str:
        """Kind and name, as kubectl prints them."""
        return f"rolebinding/{self.name}" if self.namespace else f"clusterrolebinding/{self.name}"

    def body(self) -> dict[str, Any]:
        """Return the manifest."""
        place = {"namespace": self.namespace} if self.namespace else {}
        given = {name: text for name, text in self.notes.items() if text}
        notes = {"annotations": given} if given else {}
        return {
            "apiVersion": f"{GROUP}/v1",
            "kind": "RoleBinding" if self.namespace else "ClusterRoleBinding",
            "metadata": {"name": self.name, **place, **notes},
            "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": self.role},
            "subjects": [msgspec.to_builtins(self.subject)] if self.subject else [],
        }

    def standing(self, found: RoleBinding | None) -> Standing:
        """Compare this binding with the one of that name in the cluster.

        Raises:
            ClickException: It binds something else; that cannot be changed.
        """
        if found is None:
            return "missing"
        if not found.binds(self.role):
            place = f" -n {self.namespace}" if self.namespace else ""
            raise click.ClickException(
                f"{self.about} binds {found.role_ref.kind} {found.role_ref.name}, not ClusterRole {self.role}: make a "
                f"binding of another name for that, and remove this one: kubectl delete {self.about}{place}"
            )
        if any(found.metadata.annotations.get(name) != text for name, text in self.notes.items()):
            return "outdated"
        return "there" if self.subject is None or self.subject in (found.subjects or ()) else "incomplete"


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


def _name_of(subject: Subject) -> str:
    """Return a subject within the name of a binding."""
    if subject.kind == "ServiceAccount":
        return subject.username
    return _IN_NO_NAME.sub("-", f"group:{subject.name}" if subject.kind == "Group" else subject.name)


def grants(subject: Subject, namespace: str, provider_namespace: str) -> list[Grant]:
    """Return the bindings that make a subject an instructor of a namespace."""
    lablets = Subject("ServiceAccount", "default", namespace=namespace)
    provider = Subject("ServiceAccount", wellknown.SERVICE_ACCOUNT, namespace=provider_namespace)
    who = _name_of(subject)
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


def page_of(namespace: str, page: str, before: str = "", prefix: str | None = None, *, image: str = "") -> list[Grant]:
    """Return the binding that carries what an admin says of a class; none if nothing is said.

    It has the role, and binds nobody: so only who may give the role may write the address, to which tokens are sent.

    Args:
        namespace: That of the class.
        page: The address.
        before: The address until now; "" if there is none.
        prefix: What the usernames of learners begin with; None leaves what is there.
        image: Of the installation; "" if it is not known.
    """
    was = f", until now at {before}" if before and before != page else ""
    means = f"instructors of {namespace} send their tokens to the provider's page at {page}{was}" if page else ""
    if prefix is not None:
        learners = f"learners of {namespace} are users {prefix}NAME of the cluster"
        means = f"{means}; {learners}" if means else learners
    if image:
        runs = f"Jobs of schedules in {namespace} run the image {image}"
        means = f"{means}; {runs}" if means else runs
    said = page or prefix is not None or image
    return [Grant(INSTRUCTOR, namespace, INSTRUCTOR, None, means, page, prefix, image)] if said else []


def warning_of(namespace: str, labels: Mapping[str, str]) -> str:
    """Return a warning of the Pods that an instructor may make; "" if a Pod Security level limits them."""
    if labels.get(_LEVEL) in _LEVELS:
        return ""
    return (
        f"WARNING: namespace {namespace} enforces neither the Pod Security level baseline nor restricted, so who may "
        "create Pods there, as an instructor may, can make privileged ones, which take over the nodes they run on. "
        f"Set it: kubectl label namespace {namespace} {_LEVEL}=baseline --overwrite"
    )


_API: Final = f"/apis/{GROUP}/v1"
_ADMISSION: Final = "/apis/admissionregistration.k8s.io/v1"
_LIMITS: Final = ("vkprovider-instructors", "vkprovider-assignments", "vkprovider-links")
"""The policies that keep an instructor to the own class's definitions, assignments and links, and their bindings."""
_NO_PAGE: Final = (
    "note: no CMLWorker shows the address of the provider's page, which instructors ask for logins and what learners "
    "left: set VKPROVIDER_PAGE_URL and run this again, or add --page-url URL"
)


def grant(
    user: str,
    *,
    group: bool,
    page_url: str,
    username_prefix: str | None,
    links: bool | None,
    dry_run: bool,
    output: str,
    provider_namespace: str,
    place: Place,
) -> None:
    """Make USER an instructor of a namespace."""
    subject, namespace = subject_of(user, group=group), namespace_of(place.namespace, provider_namespace)
    wanted = grants(subject, namespace, provider_namespace)
    page = safe(page_url, "--page-url") if page_url else ""
    if dry_run and output != "text":
        click.echo(_documents([*wanted, *page_of(namespace, page, prefix=username_prefix)], output, namespace, links))
        return

    async def work(kube: KubeClient, _: str) -> list[tuple[Grant, Standing]]:
        await _check(kube, subject, namespace, provider_namespace, wanted)
        before = await granted(kube, namespace)
        address = page or await shown(kube)
        address = safe(address, "the address that the CMLWorkers show:") if address else before
        image = await _installed_image(kube, provider_namespace)
        everything = [*wanted, *page_of(namespace, address, before, username_prefix, image=image)]
        found = [await _bindings(kube, each).get(each.name) for each in everything]
        standings = [each.standing(binding) for each, binding in zip(everything, found, strict=True)]
        if not dry_run:
            for each, binding in zip(everything, found, strict=True):
                await _write(kube, each, binding)
            if links is not None:
                await Resource(kube, NAMESPACES).patch(namespace, labels_of_links(links=links))
        return list(zip(everything, standings, strict=True))

    done = place.run(work)
    if not any(each.page for each, _ in done):
        click.echo(_NO_PAGE, err=True)
    if output != "text":
        click.echo(_documents([each for each, _ in done], output, namespace, links))
        return
    verbs = {"missing": "created", "incomplete": "extended", "outdated": "changed", "there": "unchanged"}
    for each, standing in done:
        click.echo(f"{each.about} {verbs[standing]}{' (dry run)' if dry_run else ''}: {each.means}")
    if links is not None:
        means = "may give learners links, which take no account" if links else "give no links; those that there are end"
        click.echo(
            f"namespace/{namespace} labelled{' (dry run)' if dry_run else ''}: instructors of {namespace} {means}"
        )


async def _installed_image(kube: KubeClient, provider_namespace: str) -> str:
    """Return the image that the provider runs; "" where it runs as no Deployment, as on a sandbox."""
    found = await Resource(kube, DEPLOYMENTS, provider_namespace).get(wellknown.SERVICE_ACCOUNT)
    containers = found.spec.template.spec.containers if found is not None else []
    return containers[0].image if containers else ""


def labels_of_links(*, links: bool) -> dict[str, Any]:
    """Return the change of a namespace that allows links, or forbids them: then the portal opens none."""
    return {"metadata": {"labels": {names.LABEL_LINKS: names.LINKS_ALLOWED if links else None}}}


def _documents(wanted: Sequence[Grant], output: str, namespace: str, links: bool | None) -> str:  # noqa: FBT001 (as it is said)
    bodies = [each.body() for each in wanted]
    if links:
        place = {"name": namespace, "labels": {names.LABEL_LINKS: names.LINKS_ALLOWED}}
        bodies.append({"apiVersion": "v1", "kind": "Namespace", "metadata": place})
    if output == "yaml":
        return yaml.safe_dump_all(bodies, sort_keys=False).rstrip("\n")
    return document({"apiVersion": "v1", "kind": "List", "items": bodies}, output)


def _bindings(kube: KubeClient, wanted: Grant) -> Resource[RoleBinding]:
    return Resource(
        kube, kind(_API, "rolebindings" if wanted.namespace else "clusterrolebindings", RoleBinding), wanted.namespace
    )


async def _check(
    kube: KubeClient, subject: Subject, namespace: str, provider_namespace: str, wanted: Sequence[Grant]
) -> None:
    """Check that there is everything that the bindings name: the API server would bind what does not exist, too.

    A warning about the namespace is printed.

    Raises:
        ClickException: Something is missing.
    """
    home = await Resource(kube, NAMESPACES).get(namespace)
    if home is None:
        raise click.ClickException(
            f"namespace {namespace} does not exist; make it: kubectl create namespace {namespace}"
        )
    if portalnames.LABEL_PORTAL in home.metadata.labels:
        raise click.ClickException(
            f"namespace {namespace} is that of a lab of the portal: who may make Pods there reads the token of its "
            "user. Name the namespace of the class; the portal binds its instructors in the labs of its learners"
        )
    if warning := warning_of(namespace, home.metadata.labels):
        click.echo(warning, err=True)
    installed = await Resource(kube, kind(_API, "clusterrolebindings", RoleBinding)).get(wellknown.SERVICE_ACCOUNT)
    homes = sorted(installed.namespaces) if installed else []
    if not homes:
        raise click.ClickException(
            f"ClusterRoleBinding {wellknown.SERVICE_ACCOUNT} does not exist: vkprovider is not "
            "installed in this cluster"
        )
    if provider_namespace not in homes:
        raise click.ClickException(
            f"vkprovider is installed in the namespace {homes[0]}; add: --provider-namespace {homes[0]}"
        )
    roles = Resource(kube, kind(_API, "clusterroles", PartialObject))
    policies = Resource(kube, kind(_ADMISSION, "validatingadmissionpolicybindings", PartialObject))
    missing = [f"ClusterRole {each.role}" for each in wanted if await roles.get(each.role) is None]
    # Without them, the user would write the definitions of all classes, and pass the role on.
    missing += [f"ValidatingAdmissionPolicyBinding {each}" for each in _LIMITS if await policies.get(each) is None]
    if missing:
        raise click.ClickException(
            f"{missing[0]} does not exist: the manifests in this cluster are of another version than this command; "
            "apply those of this version"
        )
    if subject.kind == "ServiceAccount":
        accounts = Resource(kube, kind("/api/v1", "serviceaccounts", PartialObject), subject.namespace)
        if await accounts.get(subject.name) is None:
            raise click.ClickException(
                f"serviceaccount {subject.namespace}/{subject.name} does not exist; make it: kubectl create "
                f"serviceaccount {subject.name} -n {subject.namespace}"
            )


async def _write(kube: KubeClient, wanted: Grant, found: RoleBinding | None) -> None:
    bindings = _bindings(kube, wanted)
    if found is None:
        await bindings.create(wanted.body())
        return
    meta = found.metadata
    subjects = found.subjects or ()
    change: dict[str, Any] = {}
    if wanted.subject is not None and wanted.subject not in subjects:
        change = {"subjects": [msgspec.to_builtins(each) for each in (*subjects, wanted.subject)]}
    elif any(found.metadata.annotations.get(name) != text for name, text in wanted.notes.items()):
        change = {"metadata": {"annotations": wanted.notes}}
    if change:
        await bindings.patch(wanted.name, change, uid=meta.uid, resource_version=meta.resource_version)


_APPROVED: Final = {"metadata": {"annotations": {names.ANNOTATION_APPROVED: "true"}}}


def approve(worker: str, *, place: Place) -> None:
    """Approve CMLWorker WORKER, which was made for an agent: its Node is uncordoned, and lablets may begin there."""

    async def work(kube: KubeClient, _: str) -> None:
        try:
            await Resource(kube, WORKERS).patch(worker, _APPROVED)
        except NotFound:
            raise click.ClickException(f"CMLWorker {worker!r} does not exist; see: kubectl get cmlworkers") from None

    place.run(work)
    click.echo(f"cmlworker/{worker} approved")
