"""Options of commands that talk to a cluster."""

import os
from collections.abc import Callable
from typing import Any, Final

import click

from vkprovider.cli.shared import candidates
from vkprovider.kube.http import auth
from vkprovider.kube.http import kubeconfig as kubeconfigs

IN_CLUSTER: Final = "in-cluster"


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


def context_of(kubeconfig: str | None, context: str | None) -> str:
    """Return the name of the context that `KubeClient.connect` uses with these arguments.

    Raises:
        InputError: The kubeconfig is missing or wrong.
    """
    named = kubeconfig or os.environ.get("KUBECONFIG")
    account = auth.SERVICE_ACCOUNT / "token"
    if not named and not context and "KUBERNETES_SERVICE_HOST" in os.environ and account.is_file():
        return IN_CLUSTER
    return kubeconfigs.read(named or "~/.kube/config", context).context
