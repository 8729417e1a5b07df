"""Secrets of the provider's own namespace, read when they are needed and kept nowhere."""

from typing import Final

import msgspec

from vkprovider.api.errors import Forbidden, InputError, NotFound, Unauthorized
from vkprovider.api.models import CMLWorkerSpec
from vkprovider.api.objects import Secret
from vkprovider.cml.spi import Credentials, CredentialsReader
from vkprovider.controllers.context import Context

_KEYS: Final = ("username", "password")
_decoder: Final = msgspec.json.Decoder(Secret)


async def read_secret(ctx: Context, name: str, *, reason: str, keys: str) -> dict[str, bytes]:
    """Read a Secret.

    Args:
        ctx: The replica.
        name: The Secret's.
        reason: What the error is called.
        keys: Which it should have, in words, for who has to create it.

    Raises:
        InputError: It does not exist, or may not be read.
        OutsideError: The API server was no help.
    """
    where = f"Secret {ctx.namespace}/{name}"
    try:
        return _decoder.decode(await ctx.kube.get(f"/api/v1/namespaces/{ctx.namespace}/secrets/{name}")).data
    except NotFound:
        text = f"{where} does not exist; create it with keys {keys}"
    except Forbidden as error:
        text = f"{where} cannot be read: {error.message}"
    raise InputError(reason, text)


def reader(ctx: Context, spec: CMLWorkerSpec) -> CredentialsReader:
    """Make the function that reads a worker's credentials; it is called before every login."""
    name = spec.credentials_secret_name

    async def read() -> Credentials:
        if not name:
            raise Unauthorized("spec.credentialsSecretName is not set; name a Secret with keys username and password")
        where = f"Secret {ctx.namespace}/{name}"
        try:
            data = await read_secret(ctx, name, reason="CredentialsInvalid", keys="username and password")
        except InputError as error:
            raise Unauthorized(error.message) from None
        missing = [key for key in _KEYS if not data.get(key)]
        if missing:
            raise Unauthorized(f"{where} lacks the key {' and '.join(missing)}")
        try:
            username, password = (data[key].decode() for key in _KEYS)
        except UnicodeDecodeError:
            raise Unauthorized(f"{where}: username or password is no text") from None
        broken = [key for key in _KEYS if data[key] != data[key].rstrip(b"\r\n")]
        if broken:
            raise Unauthorized(
                f"{where}: {' and '.join(broken)} ends with a line break; use `echo -n`, or --from-literal"
            )
        return Credentials(username, password)

    return read
