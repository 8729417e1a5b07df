"""One issuer for each module, and an API server that takes its ID tokens; browsers of their visitors."""

from collections.abc import Iterator

import pytest

from tests.component.portal.harness import install
from tests.component.portal.openid.people import CLIENTS, CONFIDENTIAL, PUBLIC, USERS
from tests.support.apiserver import ApiServer, running
from tests.support.issuer import Issuer, issuing, trusting
from tests.support.page import kept_browsers


@pytest.fixture(scope="module")
def issuer_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Issuer]:
    with issuing(tmp_path_factory.mktemp("issuer"), clients=CLIENTS, users=USERS) as issuer:
        yield issuer


@pytest.fixture
def issuer(issuer_process: Issuer) -> Issuer:
    """The issuer with the users of each test: alice and bob in `ccna`, ann in `teachers`."""
    issuer_process.reset()
    return issuer_process


@pytest.fixture(scope="module")
def apiserver(issuer_process: Issuer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """An API server to which users of the issuer are `oidc:NAME`, in groups `oidc:GROUP`."""
    trust = trusting(tmp_path_factory.mktemp("trust"), issuer_process, PUBLIC, CONFIDENTIAL)
    with running(tmp_path_factory.mktemp("apiserver"), trust) as server:
        yield server


@pytest.fixture(scope="module")
def portal_server(apiserver: ApiServer) -> ApiServer:
    """That API server, with the rights of the portal."""
    install(apiserver)
    return apiserver


@pytest.fixture(scope="module", autouse=True)
def browsers() -> Iterator[None]:
    """One browser for each visitor that a module has at a time."""
    with kept_browsers():
        yield
