"""Requests to the API server in the name of a visitor: with their token, and with nothing of the portal's.

Without the token nothing is asked: the portal never acts for a visitor with its own rights, and impersonates nobody.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from vkprovider.platform.http.answers import TokenMissing
from vkprovider.platform.kube.client import KubeClient, user_agent
from vkprovider.platform.kube.http import auth
from vkprovider.platform.kube.http.credentials import ClusterAccess
from vkprovider.platform.settings import KubeSettings


class AsVisitor:
    """Reaches the API server of the portal for others."""

    def __init__(self, settings: KubeSettings, replica: str) -> None:
        """Create it.

        Args:
            settings: Name the API server.
            replica: The name of this replica, for audit logs.
        """
        self._settings = settings
        self._agent = user_agent(replica, "vkprovider-portal-visitor")

    async def access(self, token: str) -> ClusterAccess:
        """Return how to reach the API server with a token.

        Raises:
            InputError: The kubeconfig of the portal has changed, and is wrong.
            Refused: 401: there is no token.
        """
        if not token:
            raise TokenMissing("the ingress sends no token of yours, so that nothing can be done here in your name")
        return await auth.load_for(token, self._settings.kubeconfig)

    @asynccontextmanager
    async def client(self, token: str) -> AsyncIterator[KubeClient]:
        """Yield a client that has a token, as long as it is needed.

        Raises:
            InputError: The kubeconfig of the portal has changed, and is wrong.
            Refused: 401: there is no token.
        """

        async def reload() -> ClusterAccess:
            return await self.access(token)

        client = KubeClient(await reload(), reload, self._settings, user_agent=self._agent)
        try:
            yield client
        finally:
            await client.close()
