"""Commands for admins of definitions and workers: refresh, approve."""

import click

from vkprovider.cli.shared import candidates
from vkprovider.cli.shared.lazy import runs
from vkprovider.cli.shared.options import context_options, document_option, timeout_option


@click.command("refresh", epilog="Example: kubectl lablet refresh netlab")
@click.argument("name", shell_complete=candidates.definitions)
@click.option("--force", is_flag=True, help="Adopt the content even if its version is the current one.")
@click.option("--wait/--no-wait", default=True, show_default=True, help="Whether to wait for the outcome.")
@timeout_option("2m")
@document_option
@context_options
@runs("refresh_definition", of="vkprovider.cli.lablet.refresh")
def refresh_definition() -> None:
    """Read the content of LabletDefinition NAME again, from its object store or ConfigMap.

    New pods use the new content; running lablets keep theirs.
    """


@click.command(epilog="Example: kubectl lablet approve cml-7")
@click.argument("worker", shell_complete=candidates.workers)
@context_options
@runs("approve", of="vkprovider.cli.lablet.approve")
def approve() -> None:
    """Approve CMLWorker WORKER, which was made for an agent: its Node is uncordoned, and lablets may begin there."""
