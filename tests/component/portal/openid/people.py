"""Who is registered at the issuer of the tests: clients and users."""

from typing import Final

from tests.support.issuer import LOOPBACK, IssuerClient, IssuerUser

PUBLIC: Final = "vkprovider-portal"
CONFIDENTIAL: Final = "vkprovider-portal-with-a-secret"
SECRET: Final = "secret of the portal & more"
CLIENTS: Final = (IssuerClient(PUBLIC, pattern=LOOPBACK), IssuerClient(CONFIDENTIAL, SECRET, pattern=LOOPBACK))
USERS: Final = (IssuerUser("alice", ("ccna",)), IssuerUser("bob", ("ccna",)), IssuerUser("ann", ("teachers",)))
