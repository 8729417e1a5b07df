"""The options that choose a cluster, a namespace and Pods: as kubectl has them, for every command of `kubectl lablet`.

@place_options               -n, --context, --kubeconfig    → place=Place(…)
@scope_options               the same and -A, -l, --field-selector, for commands that list    → scope=Scope(…)
@context_options             --context and --kubeconfig alone, for what has no namespace    → place=Place(…)
"""

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

import click
import msgspec

from vkprovider.api.errors import Forbidden, InputError, OutsideError, TlsFailed, Unauthorized, Unavailable
from vkprovider.cli.shared import candidates
from vkprovider.cli.shared.cluster import cluster_options
from vkprovider.kube.client import KubeClient
from vkprovider.settings.cluster import KubeSettings

T = TypeVar("T")
Command = Callable[..., Any]

_ADVICE: Final[tuple[tuple[type[OutsideError], str], ...]] = (
    (Unauthorized, "log in to the cluster again; to see who you are: kubectl auth whoami"),
    (Forbidden, "ask an admin of the namespace for that right; to see yours: kubectl auth can-i --list"),
    (TlsFailed, "check the cluster's certificate-authority in the kubeconfig"),
    (Unavailable, "try again; to see whether the cluster answers: kubectl cluster-info"),
)
"""What to do about a refusal of the API server; the first that fits."""


def advised(error: OutsideError) -> str:
    """Return the message of a refusal, with what to do about it."""
    advice = next((text for kind, text in _ADVICE if isinstance(error, kind)), "")
    return f"{error.message.rstrip('.')}; {advice}" if advice else error.message


class Place(msgspec.Struct, frozen=True):
    """The cluster and namespace of the options.

    Attributes:
        namespace: None for the context's own.
    """

    kubeconfig: str | None
    context: str | None
    namespace: str | None = None

    def run(self, work: Callable[[KubeClient, str], Coroutine[Any, Any, T]]) -> T:
        """Call a function with a client and a namespace.

        Raises:
            ClickException: It failed.
        """
        try:
            return asyncio.run(self._connected(work))
        except InputError as error:
            raise click.ClickException(str(error)) from None
        except OutsideError as error:
            raise click.ClickException(advised(error)) from None

    async def _connected(self, work: Callable[[KubeClient, str], Coroutine[Any, Any, T]]) -> T:
        kube = await KubeClient.connect(KubeSettings(kubeconfig=self.kubeconfig), context=self.context)
        try:
            return await work(kube, self.namespace or kube.namespace)
        finally:
            await kube.close()


class Scope(msgspec.Struct, frozen=True):
    """Which Pods of a place a command lists.

    Attributes:
        everywhere: In all namespaces; the place's does not count then.
        labels, fields: Selectors; empty for all.
    """

    place: Place
    everywhere: bool = False
    labels: str = ""
    fields: str = ""

    def run(self, work: Callable[[KubeClient, str], Coroutine[Any, Any, T]]) -> T:
        """Call a function with a client and a namespace, which is empty for all of them.

        Raises:
            ClickException: It failed.
        """

        async def within(kube: KubeClient, namespace: str) -> T:
            return await work(kube, "" if self.everywhere else namespace)

        return self.place.run(within)


def selector_option(text: str) -> Callable[[Command], Command]:
    """Add `-l`."""
    return click.option("-l", "--selector", metavar="SELECTOR", default="", help=text)


def _namespace_option(command: Command) -> Command:
    return click.option(
        "-n",
        "--namespace",
        metavar="NAMESPACE",
        shell_complete=candidates.namespaces,
        help="Namespace (default: the context's).",
    )(command)


def context_options(command: Command) -> Command:
    """Add `--kubeconfig` and `--context`, and pass them as `place`."""

    def with_place(*args: Any, kubeconfig: str | None, context: str | None, **options: Any) -> Any:
        return command(*args, place=Place(kubeconfig, context), **options)

    return cluster_options(wrapped(with_place, command))


def place_options(command: Command) -> Command:
    """Add `--namespace`, `--kubeconfig` and `--context`, and pass them as `place`."""

    def with_place(
        *args: Any, kubeconfig: str | None, context: str | None, namespace: str | None, **options: Any
    ) -> Any:
        return command(*args, place=Place(kubeconfig, context, namespace), **options)

    return _namespace_option(cluster_options(wrapped(with_place, command)))


def scope_options(command: Command) -> Command:
    """Add the options of `place_options`, and those that select Pods, and pass them as `scope`."""

    def with_scope(*args: Any, all_namespaces: bool, selector: str, field_selector: str, **options: Any) -> Any:
        place = options.pop("place")
        return command(*args, scope=Scope(place, all_namespaces, selector, field_selector), **options)

    selected = place_options(wrapped(with_scope, command))
    everywhere = click.option("-A", "--all-namespaces", is_flag=True, help="In all namespaces; -n does not count then.")
    fields = click.option(
        "--field-selector", metavar="SELECTOR", default="", help="Field selector, such as spec.nodeName=vnode.cml-1."
    )
    return everywhere(selector_option("Label selector, such as class=monday.")(fields(selected)))


def wrapped(wrapper: Command, command: Command) -> Command:
    """Give a wrapper the name, help and parameters of the command that it wraps, without its signature."""
    functools.update_wrapper(wrapper, command, updated=())
    del wrapper.__wrapped__  # type: ignore[attr-defined]
    wrapper.__click_params__ = getattr(command, "__click_params__", [])  # type: ignore[attr-defined]
    return wrapper
