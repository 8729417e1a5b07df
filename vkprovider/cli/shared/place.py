"""The cluster, the namespace and the Pods that the options of a command name, and the client that follows from them."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

import click
import msgspec

from vkprovider.api.errors import Forbidden, InputError, OutsideError, TlsFailed, Unauthorized, Unavailable
from vkprovider.kube.client import KubeClient
from vkprovider.settings.cluster import KubeSettings

T = TypeVar("T")

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
