"""`kubectl lablet doctor`: what is wrong in the namespace of a class, one line per fault."""

import sys

import click

from vkprovider.cli.checkup.instructor import Classroom
from vkprovider.cli.shared.place import Place
from vkprovider.doctor.findings import DoctorReport, json_of, text_of
from vkprovider.platform.errors import VkproviderError
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.http import auth
from vkprovider.platform.shipped import manifest


def doctor(*, output: str, place: Place) -> None:
    """Check the namespace of a class with an instructor's rights."""
    try:
        roles = manifest("base/roles.yaml")
    except VkproviderError as error:
        raise click.ClickException(f"the shipped manifests cannot be read: {error}") from None

    async def work(kube: KubeClient, namespace: str) -> DoctorReport:
        context = auth.context_of(place.kubeconfig, place.context)
        return await Classroom(kube, context=context, namespace=namespace, roles=roles).examine()

    report = place.run(work)
    click.echo(json_of(report) if output == "json" else text_of(report))
    sys.exit(report.exit_code)
