"""Asks one worker from this machine: its Secret, then version, login, rights, licence, clock. Read only."""

import time
from collections.abc import Awaitable
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Final, TypeVar

import msgspec

from tunnels.base import Response
from vkprovider.cml.factory import open_session
from vkprovider.cml.operations import BASE, HANDSHAKE, LICENSING, LIST_LABS, LOG_IN
from vkprovider.cml.spi import Credentials
from vkprovider.cml.wire import CmlSystemInformation
from vkprovider.lablet.models.worker import CMLWorkerSpec
from vkprovider.labs.checks.workers import Licence, SecretState, WorkerProbe
from vkprovider.labs.pure.worker.secrets import credentials_of, password_source
from vkprovider.platform.errors import InputError, OutsideError
from vkprovider.platform.kube.resources import Resource
from vkprovider.platform.messages import Fault
from vkprovider.platform.objects import Secret
from vkprovider.rest.client import ServiceClient
from vkprovider.rest.operations import Operation, allow_list

_READ_S: Final = 10.0
_USER_ID: Final = Operation("user_id", "GET", "/users/{user}/id", _READ_S)
_USER: Final = Operation("user", "GET", "/users/{user}", _READ_S)
_REGISTRATION: Final = Operation("registration", "GET", "/licensing", _READ_S)

DOCTOR_API: Final = allow_list((HANDSHAKE, LOG_IN, LIST_LABS, _USER_ID, _USER, _REGISTRATION, LICENSING), BASE)
"""The requests of an examination; the provider itself asks less of the system API."""

T = TypeVar("T")


class _User(msgspec.Struct, frozen=True):
    admin: bool | None = None


class _Status(msgspec.Struct, frozen=True):
    status: str = ""


class _Licensing(msgspec.Struct, frozen=True):
    """`GET /licensing`: `{"registration": {"status": "COMPLETED"}, "authorization": {"status": "IN_COMPLIANCE"}}`."""

    registration: _Status = _Status()
    authorization: _Status = _Status()
    reservation_mode: bool = False


class _Quota(msgspec.Struct, frozen=True):
    """`GET /diagnostics/licensing`: `{"quota": 20, "started": 3, …}`."""

    quota: int | None = None


async def ask(spec: CMLWorkerSpec, credentials: Credentials | None) -> WorkerProbe:
    """Probe a worker over its direct transport; without credentials only its version."""
    version = ""

    async def read() -> Credentials:
        assert credentials is not None  # noqa: S101 (asked only then)
        return credentials

    try:
        verify, bundle = not spec.tls.insecure_skip_verify, spec.tls.ca_bundle
        session = open_session(spec.cml_url, read, verify=verify, ca_bundle=bundle, allow=DOCTOR_API)
    except InputError as error:
        return WorkerProbe(error=error)
    try:
        version = (await session.fetch(HANDSHAKE.to(), CmlSystemInformation)).version
        if credentials is None:
            return WorkerProbe(version)
        began_s = time.time()
        answer = await session.send(LIST_LABS.to(params={"show_all": "true"}))
        skew_s = _skew_s(answer, began_s, time.time())
        return WorkerProbe(
            version,
            skew_s=skew_s,
            admin=await _unless_refused(_is_admin(session, credentials.username)),
            licence=await _unless_refused(_licence(session)),
        )
    except OutsideError as error:
        return WorkerProbe(version, error)
    finally:
        await session.close()


async def read_secret(
    secrets: Resource[Secret], name: str, namespace: str, destination: str
) -> tuple[SecretState, Credentials | None]:
    """Read a worker's Secret; return its state, and the credentials if they may be used.

    Args:
        secrets: The Secrets of the namespace of logins.
        name: The Secret's.
        namespace: That of logins.
        destination: Of the worker; a Secret may be for another one.
    """
    try:
        secret = await secrets.get(name)
    except OutsideError as error:
        return SecretState(forbidden=error.message), None
    if secret is None:
        return SecretState(), None
    found = credentials_of(secret, namespace, destination)
    if isinstance(found, Fault):
        return SecretState(exists=True, fault=found), None
    return SecretState(exists=True), Credentials(*found, source=password_source(namespace, name))


async def _is_admin(session: ServiceClient, username: str) -> bool | None:
    user = await session.fetch(_USER_ID.to(user=username), str)
    return (await session.fetch(_USER.to(user=user), _User)).admin


async def _licence(session: ServiceClient) -> Licence:
    found = await session.fetch(_REGISTRATION.to(), _Licensing)
    quota = await _unless_refused(session.fetch(LICENSING.to(), _Quota))
    return Licence(
        found.registration.status,
        found.authorization.status,
        found.reservation_mode,
        quota.quota if quota is not None else None,
    )


async def _unless_refused(call: Awaitable[T]) -> T | None:
    """Return None for what this user may not read, or this release does not report."""
    try:
        return await call
    except OutsideError:
        return None


def _skew_s(answer: Response, asked_s: float, answered_s: float) -> float | None:
    """Return how far the worker's clock is at least ahead of this machine's; it shows whole seconds.

    It was read at some time between question and answer, so that a slow answer tells of no skew.
    """
    try:
        date: datetime = parsedate_to_datetime(answer.headers["date"])
    except (KeyError, ValueError):
        return None
    at_s = date.timestamp() + 0.5
    return at_s - min(max(at_s, asked_s), answered_s)
