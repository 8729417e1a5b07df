"""`kubectl lablet grant`: make a user an instructor of a namespace, with all that a class takes."""

from collections.abc import Sequence
from typing import Any, Final

import click
import msgspec
import yaml

from vkprovider.cli.lablet.granting.bindings import (
    GROUP,
    Bound,
    Grant,
    Standing,
    Subject,
    grants,
    namespace_of,
    page_of,
    subject_of,
    warning_of,
)
from vkprovider.cli.shared.output.formats import document
from vkprovider.cli.shared.page.address import anchored, granted, safe, shown
from vkprovider.cli.shared.place import Place
from vkprovider.lablet import names
from vkprovider.platform import wellknown
from vkprovider.platform.kube.api import NAMESPACES
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.resources import PartialObject, Resource, kind
from vkprovider.portal.pure import portalnames

_API: Final = f"/apis/{GROUP}/v1"
_ADMISSION: Final = "/apis/admissionregistration.k8s.io/v1"
_LIMITS: Final = "vkprovider-instructors"
"""The policy that keeps an instructor to the definitions of their own class, and its binding."""
_NO_PAGE: Final = (
    "note: no CMLWorker shows the address of the provider's page, which instructors ask for logins and what learners "
    "left: set VKPROVIDER_PAGE_URL and run this again, or add --page-url URL"
)


def grant(
    user: str, *, group: bool, page_url: str, dry_run: bool, output: str, provider_namespace: str, place: Place
) -> None:
    """Make USER an instructor of a namespace."""
    subject, namespace = subject_of(user, group=group), namespace_of(place.namespace, provider_namespace)
    wanted = grants(subject, namespace, provider_namespace)
    page = safe(page_url, "--page-url") if page_url else ""
    if dry_run and output != "text":
        click.echo(_documents([*wanted, *page_of(namespace, page)], output))
        return

    async def work(kube: KubeClient, _: str) -> list[tuple[Grant, Standing]]:
        await _check(kube, subject, namespace, provider_namespace, wanted)
        before = await granted(kube, namespace)
        address = page or await shown(kube)
        address = safe(address, "the address that the CMLWorkers show:") if address else before
        everything = [*wanted, *page_of(namespace, address, before)]
        found = [await _bindings(kube, each).get(each.name) for each in everything]
        standings = [each.standing(binding) for each, binding in zip(everything, found, strict=True)]
        if not dry_run:
            for each, binding in zip(everything, found, strict=True):
                await _write(kube, each, binding)
        return list(zip(everything, standings, strict=True))

    done = place.run(work)
    if not any(each.page for each, _ in done):
        click.echo(_NO_PAGE, err=True)
    if output != "text":
        click.echo(_documents([each for each, _ in done], output))
        return
    verbs = {"missing": "created", "incomplete": "extended", "outdated": "changed", "there": "unchanged"}
    for each, standing in done:
        click.echo(f"{each.about} {verbs[standing]}{' (dry run)' if dry_run else ''}: {each.means}")


def _documents(wanted: Sequence[Grant], output: str) -> str:
    if output == "yaml":
        return yaml.safe_dump_all([each.body() for each in wanted], sort_keys=False).rstrip("\n")
    return document({"apiVersion": "v1", "kind": "List", "items": [each.body() for each in wanted]}, output)


def _bindings(kube: KubeClient, wanted: Grant) -> Resource[Bound]:
    return Resource(
        kube, kind(_API, "rolebindings" if wanted.namespace else "clusterrolebindings", Bound), wanted.namespace
    )


async def _check(
    kube: KubeClient, subject: Subject, namespace: str, provider_namespace: str, wanted: Sequence[Grant]
) -> None:
    """Check that there is everything that the bindings name: the API server would bind what does not exist, too.

    A warning about the namespace is printed.

    Raises:
        ClickException: Something is missing.
        OutsideError: The API server refused or did not answer.
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
    installed = await Resource(kube, kind(_API, "clusterrolebindings", Bound)).get(wellknown.SERVICE_ACCOUNT)
    homes = sorted({each.namespace for each in installed.subjects if each.namespace}) if installed else []
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
    if await policies.get(_LIMITS) is None:  # without it, the user would write the definitions of all classes
        missing.append(f"ValidatingAdmissionPolicyBinding {_LIMITS}")
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


async def _write(kube: KubeClient, wanted: Grant, found: Bound | None) -> None:
    bindings = _bindings(kube, wanted)
    if found is None:
        await bindings.create(wanted.body())
        return
    meta = found.metadata
    change: dict[str, Any] = {}
    if wanted.subject is not None and wanted.subject not in found.subjects:
        change = {"subjects": [msgspec.to_builtins(each) for each in (*found.subjects, wanted.subject)]}
    elif wanted.page and anchored(found) != wanted.page:
        change = {"metadata": {"annotations": {names.ANNOTATION_PAGE_URL: wanted.page}}}
    if change:
        await bindings.patch(wanted.name, change, uid=meta.uid, resource_version=meta.resource_version)
