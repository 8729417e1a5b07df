"""`kubectl lablet approve`: let lablets begin on a worker that an agent has brought."""

import asyncio
from typing import Final

import click

from vkprovider.api import names
from vkprovider.api.errors import InputError, NotFound, OutsideError
from vkprovider.cli.cluster import cluster_options
from vkprovider.kube.api import Api
from vkprovider.kube.client import KubeClient
from vkprovider.settings.cluster import KubeSettings

_APPROVED: Final = {"metadata": {"annotations": {names.ANNOTATION_APPROVED: "true"}}}


@click.command(epilog="Example: kubectl lablet approve cml-7")
@click.argument("worker")
@cluster_options
def approve(worker: str, kubeconfig: str | None, context: str | None) -> None:
    """Approve CMLWorker WORKER, which was made for an agent: its Node is uncordoned, and lablets may begin there."""
    try:
        asyncio.run(_approve(kubeconfig, context, worker))
    except NotFound:
        raise click.ClickException(f"CMLWorker {worker!r} does not exist; kubectl get cmlw lists them") from None
    except (InputError, OutsideError) as error:
        raise click.ClickException(str(error)) from None
    click.echo(f"cmlworker/{worker} approved")


async def _approve(kubeconfig: str | None, context: str | None, worker: str) -> None:
    """Write the annotation.

    Raises:
        InputError: The kubeconfig is missing or wrong.
        OutsideError: The API server refused or did not answer; `NotFound` if there is no such CMLWorker.
    """
    kube = await KubeClient.connect(KubeSettings(kubeconfig=kubeconfig), context=context)
    try:
        await Api(kube, kube.namespace).workers.patch(worker, _APPROVED)
    finally:
        await kube.close()
