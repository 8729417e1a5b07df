"""`kubectl lablet approve`: let lablets begin on a worker that an agent has brought."""

from typing import Final

import click

from vkprovider.api import names
from vkprovider.api.errors import NotFound
from vkprovider.cli.shared.place import Place
from vkprovider.kube.api import WORKERS
from vkprovider.kube.client import KubeClient
from vkprovider.kube.resources import Resource

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
