"""Which namespace the cluster's installation is in: a replica of another one does nothing.

The Leases of keys say which namespace their owner is of. It has the cluster as long as its ServiceAccount has its
rights: who removes or moves an installation takes the bindings away. Of several, the one of the oldest Lease has it.
"""

import asyncio
from collections.abc import Iterable
from typing import Final

import structlog

from vkprovider.platform import wellknown
from vkprovider.platform.errors import OutsideError
from vkprovider.platform.kube.access import user_may
from vkprovider.platform.kube.informer import Informer
from vkprovider.platform.objects import Lease
from vkprovider.platform.rights import Right, User
from vkprovider.platform.runtime.context import Context
from vkprovider.platform.runtime.membership import Membership

_log: Final = structlog.get_logger(__name__)

_LOOK_S: Final = 1.0
_LOOK_ELSEWHERE_S: Final = 5.0
"""How often is asked whether the other installation still has its rights."""
_RIGHT: Final = Right("patch", "nodes/status", version="")
"""What nobody but a provider of ours does, of all rights of a ServiceAccount `vkprovider`."""


def named_by(leases: Iterable[Lease]) -> list[str]:
    """Return the namespaces that Leases name, that of the oldest Lease first.

    A Lease without the label was written by an earlier version, and names none.
    """
    ordered = sorted(leases, key=lambda lease: (lease.metadata.creation_timestamp, lease.metadata.name))
    labels = (lease.metadata.labels.get(wellknown.LABEL_INSTALLED_IN, "") for lease in ordered)
    return list(dict.fromkeys(name for name in labels if name))


class Home:
    """Whether the cluster's installation is the one of this replica's namespace.

    Attributes:
        known: Set when it was found out for the first time.
    """

    def __init__(self, ctx: Context, membership: Membership, leases: tuple[Informer[Lease], ...]) -> None:
        """Describe it; nothing is read before `run`.

        Args:
            ctx: The replica.
            membership: Ends while the installation is elsewhere.
            leases: The Leases of keys.
        """
        self._ctx = ctx
        self._membership = membership
        self._leases = leases
        self.known = asyncio.Event()

    async def run(self) -> None:
        """Keep the membership from a cluster whose installation is elsewhere, for ever."""
        for informer in self._leases:
            await informer.synced.wait()
        while True:
            try:
                elsewhere = await self.look()
            except OutsideError as error:  # in doubt, what was found last holds
                _log.warning("cannot ask which namespace the installation is in", error=str(error))
            else:
                self._tell(elsewhere)
                self._membership.yield_to(elsewhere)
                self.known.set()
            await asyncio.sleep(_LOOK_ELSEWHERE_S if self._membership.elsewhere else _LOOK_S)

    async def look(self) -> str:
        """Return the namespace of another installation that has the cluster; empty if none has."""
        for namespace in named_by(lease for informer in self._leases for lease in informer.items.values()):
            if namespace == self._ctx.namespace:
                return ""
            if await self._is_installed(namespace):
                return namespace
        return ""

    async def _is_installed(self, namespace: str) -> bool:
        """Return whether the provider of a namespace has its rights; in a namespace that is gone it has none."""
        if await self._ctx.api.namespaces.get(namespace) is None:
            return False
        user = User.of_account(namespace, wellknown.SERVICE_ACCOUNT)
        return await user_may(self._ctx.kube, user, _RIGHT.attributes())

    def _tell(self, elsewhere: str) -> None:
        before, own = self._membership.elsewhere, self._ctx.namespace
        if elsewhere and elsewhere != before:
            _log.error(
                f"vkprovider is installed in the namespace {elsewhere}, and a cluster has one installation: this "
                f"replica, of the namespace {own}, does nothing. To end it: kubectl delete namespace {own}. To have it "
                f"instead: kubectl -n {elsewhere} delete deployment vkprovider --cascade=foreground; kubectl delete "
                "clusterrolebinding vkprovider; see docs/install.md, Another namespace",
                replica=self._ctx.replica,
            )
        elif before and not elsewhere:
            _log.warning(f"the installation in the namespace {before} is gone: this replica acts", namespace=own)
