"""`kubectl lablet approve`: let lablets begin on a worker that an agent has brought."""

from typing import Final

import click

from vkprovider.cli.shared.place import Place
from vkprovider.lablet import names
from vkprovider.platform.errors import NotFound
from vkprovider.platform.kube.api import WORKERS
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.resources import Resource

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
