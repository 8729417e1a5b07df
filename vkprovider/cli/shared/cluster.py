"""Options of commands that talk to a cluster."""

from collections.abc import Callable
from typing import Any

import click

from vkprovider.cli.shared import candidates


def cluster_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--kubeconfig` and `--context`."""
    context = click.option(
        "--context",
        metavar="CONTEXT",
        shell_complete=candidates.contexts,
        help="Kubeconfig context (default: current).",
    )
    kubeconfig = click.option(
        "--kubeconfig",
        metavar="PATH",
        shell_complete=candidates.files,
        help="Kubeconfig file (default: KUBECONFIG, else ~/.kube/config).",
    )
    return kubeconfig(context(command))
