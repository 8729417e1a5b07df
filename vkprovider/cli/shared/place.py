"""The cluster, the namespace and the Pods that the options of a command name, and the client that follows from them."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

import click
import msgspec

from vkprovider.cli.shared import clock
from vkprovider.cli.shared.refusals import advised
from vkprovider.lablet import names
from vkprovider.platform import wellknown
from vkprovider.platform.concurrency import at_most
from vkprovider.platform.errors import Forbidden, InputError, OutsideError
from vkprovider.platform.kube.access import may
from vkprovider.platform.kube.api import Api
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.rights import Right
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
            text = advised(error, namespace)
            if (
                isinstance(error, Forbidden)
                and namespace == wellknown.DEFAULT_NAMESPACE
                and (taught := await taught_by(kube))
            ):
                text = f"{text}. You teach {', '.join(taught)}: add -n {taught[0]}"
            raise click.ClickException(text) from None
        finally:
            await kube.close()


_CLASSES_MAX: Final = 20
"""The most namespaces about which the API server is asked; each is a request."""


async def taught_by(kube: KubeClient) -> list[str]:
    """Return namespaces in which the user is an instructor, of those that own a definition; [] if that is not known.

    Who the user is in other namespaces nobody may list; definitions are cluster-wide, and name the class they are of.
    """
    try:
        found = await Api(kube, "").definitions.list()
        owners = {definition.metadata.labels.get(names.LABEL_OWNER_NAMESPACE, "") for definition in found}
        asked = sorted(owners - {""})[:_CLASSES_MAX]
        taught = await at_most(_ASKED_AT_ONCE, lambda each: may(kube, _teaching(each)), asked)
    except OutsideError:
        return []
    return [each for each, is_taught in zip(asked, taught, strict=True) if is_taught]


_ASKED_AT_ONCE: Final = 5


def _teaching(namespace: str) -> dict[str, Any]:
    return Right("teach", "lablets", namespace, group=wellknown.GROUP).attributes()


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
