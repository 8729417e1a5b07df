"""The cluster, the namespace and the Pods that the options of a command name, and the client that follows from them."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import click
import msgspec

from vkprovider.cli.shared import clock
from vkprovider.cli.shared.refusals import advised
from vkprovider.platform.errors import InputError, OutsideError
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.settings import KubeSettings

T = TypeVar("T")


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
            raise click.ClickException(advised(error, self.namespace or "")) from None

    async def _connected(self, work: Callable[[KubeClient, str], Coroutine[Any, Any, T]]) -> T:
        kube = await KubeClient.connect(KubeSettings(kubeconfig=self.kubeconfig), context=self.context)
        clock.follow(kube.clock)
        namespace = self.namespace or kube.namespace
        try:
            return await work(kube, namespace)
        except OutsideError as error:
            raise click.ClickException(advised(error, namespace)) from None
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
