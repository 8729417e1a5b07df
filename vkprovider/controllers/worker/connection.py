"""The connections to a worker: where its CMLWorker says it is, with the credentials of its Secret.

A Secret is read before every login and kept nowhere, so that a changed password needs no restart. Its password goes
only to the hosts that the Secret itself names, whatever url the CMLWorker has by now.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from vkprovider.api import names
from vkprovider.api.errors import Forbidden, InputError, Unauthorized, Withheld
from vkprovider.api.models import CMLWorkerSpec
from vkprovider.api.objects import CustomResource, Secret
from vkprovider.cml.factory import open_labs
from vkprovider.cml.spi import Credentials, CredentialsReader, Labs
from vkprovider.cml.stats import WorkerStats, open_worker_stats
from vkprovider.controllers.context import Context
from vkprovider.controllers.worker.lab_index import LabIndex
from vkprovider.domain.worker.secrets import worker_secret_refusal
from vkprovider.kube.client import Guard, user_agent

_KEYS: Final = ("username", "password")


@dataclass(frozen=True, slots=True)
class Connection:
    """The connections to one worker.

    Attributes:
        spec: The CMLWorker's, by which they were opened.
        labs: For labs.
        lab_index: The labs that no claim names.
        stats: For statistics; None unless the CMLWorker asks for them.
    """

    spec: CMLWorkerSpec
    labs: Labs
    lab_index: LabIndex
    stats: WorkerStats | None = None

    async def close(self) -> None:
        """Close the connections."""
        await self.labs.close()
        if self.stats is not None:
            await self.stats.close()


def connect(ctx: Context, name: str, spec: CMLWorkerSpec, guard: Guard) -> Connection:
    """Open all connections to a worker; nothing is sent before the first call.

    Args:
        ctx: The replica.
        name: The CMLWorker's.
        spec: The CMLWorker's.
        guard: Called right before a request is written.

    Raises:
        InputError: `TunnelUnsupported`, `WorkerUrlInvalid` or `CaBundleInvalid`.
    """
    labs = open_worker(ctx, spec, guard)
    return Connection(spec, labs, LabIndex(ctx.installation, name, labs), _open_stats(ctx, spec, guard))


def open_worker(ctx: Context, spec: CMLWorkerSpec, guard: Guard | None = None) -> Labs:
    """Open a connection to a worker's labs; nothing is sent before the first call.

    Args:
        ctx: The replica.
        spec: The CMLWorker's.
        guard: Called right before a request is written; None for a caller that only reads.

    Raises:
        InputError: `TunnelUnsupported`, `WorkerUrlInvalid` or `CaBundleInvalid`.
    """
    if spec.tunnel != "direct":
        raise InputError("TunnelUnsupported", f"spec.tunnel: {spec.tunnel} is not there yet, only direct is")
    return open_labs(
        spec.url,
        _credentials_of(ctx, spec),
        verify=not spec.tls.insecure_skip_verify,
        ca_bundle=spec.tls.ca_bundle,
        guard=guard,
        user_agent=user_agent(ctx.replica),
    )


def _open_stats(ctx: Context, spec: CMLWorkerSpec, guard: Guard) -> WorkerStats | None:
    if spec.stats != "On":
        return None
    return open_worker_stats(
        spec.url,
        _credentials_of(ctx, spec),
        verify=not spec.tls.insecure_skip_verify,
        ca_bundle=spec.tls.ca_bundle,
        guard=guard,
        user_agent=user_agent(ctx.replica),
    )


async def read_secret(ctx: Context, name: str, *, reason: str, keys: str, used_for: str) -> Secret:
    """Read a Secret of the provider's namespace.

    Args:
        ctx: The replica.
        name: The Secret's.
        reason: Of the error that is raised.
        keys: The keys that it should have, in words, for the admin who has to create it.
        used_for: The label that it should have; the caller checks whether it does.

    Raises:
        InputError: It does not exist, or may not be read.
        OutsideError: The API server refused or did not answer.
    """
    where = f"Secret {ctx.namespace}/{name}"
    try:
        secret = await ctx.api.secrets.get(name)
    except Forbidden as error:
        raise InputError(reason, f"{where} cannot be read: {error.message}") from None
    if secret is None:
        label = f"{names.LABEL_USED_FOR}={used_for}"
        raise InputError(reason, f"{where} does not exist; create it with keys {keys} and the label {label}")
    return secret


def secrets_of(resources: Iterable[CustomResource]) -> frozenset[str]:
    """Return the names of the Secrets that CMLWorkers name, also those that cannot be used."""
    return frozenset(str(resource.spec.get("credentialsSecretName")) for resource in resources)


def _credentials_of(ctx: Context, spec: CMLWorkerSpec) -> CredentialsReader:
    """Return the function that reads a worker's credentials; it is called before every login."""
    name = spec.credentials_secret_name

    async def read() -> Credentials:
        if not name:
            raise Unauthorized("spec.credentialsSecretName is not set; name a Secret with keys username and password")
        where = f"Secret {ctx.namespace}/{name}"
        try:
            keys = "username and password"
            secret = await read_secret(
                ctx, name, reason="CredentialsInvalid", keys=keys, used_for=names.USED_FOR_WORKER
            )
        except InputError as error:
            raise Unauthorized(error.message) from None
        if refusal := worker_secret_refusal(secret.metadata, ctx.namespace, spec.url):
            raise Withheld(refusal)
        data = secret.data
        missing = [key for key in _KEYS if not data.get(key)]
        if missing:
            raise Unauthorized(f"{where} lacks the key {' and '.join(missing)}")
        try:
            username, password = (data[key].decode() for key in _KEYS)
        except UnicodeDecodeError:
            raise Unauthorized(f"{where}: username or password is not text") from None
        broken = [key for key in _KEYS if data[key] != data[key].rstrip(b"\r\n")]
        if broken:
            raise Unauthorized(
                f"{where}: {' and '.join(broken)} ends with a line break; use `echo -n`, or --from-literal"
            )
        return Credentials(username, password)

    return read
