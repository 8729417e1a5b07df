"""Credentials of workers, read from the provider's own namespace when they are needed and kept nowhere."""

import base64
import binascii
from typing import Final

import msgspec

from vkprovider.api.errors import Forbidden, InputError, NotFound, Unauthorized
from vkprovider.api.models import CMLWorkerSpec
from vkprovider.cml.spi import Credentials, CredentialsReader
from vkprovider.controllers.context import Context


class _Secret(msgspec.Struct, frozen=True):
    data: dict[str, str] = {}


_decoder: Final = msgspec.json.Decoder(_Secret)


def reader(ctx: Context, spec: CMLWorkerSpec) -> CredentialsReader:
    """Make the function that reads a worker's credentials; it is called before every login."""
    name = spec.credentials_secret_name

    async def read() -> Credentials:
        if not name:
            raise Unauthorized("spec.credentialsSecretName is not set; name a Secret with keys username and password")
        where = f"Secret {ctx.namespace}/{name}"
        try:
            raw = await ctx.kube.get(f"/api/v1/namespaces/{ctx.namespace}/secrets/{name}")
        except NotFound:
            raise Unauthorized(f"{where} does not exist; create it with keys username and password") from None
        except Forbidden as error:
            raise Unauthorized(f"{where} cannot be read: {error.message}") from None
        data = _decoder.decode(raw).data
        missing = [key for key in ("username", "password") if not data.get(key)]
        if missing:
            raise Unauthorized(f"{where} lacks the key {' and '.join(missing)}")
        try:
            username, password = (base64.b64decode(data[key]).decode() for key in ("username", "password"))
        except (binascii.Error, UnicodeDecodeError):
            raise Unauthorized(f"{where}: username or password is no text") from None
        broken = [
            key for key, value in (("username", username), ("password", password)) if value != value.rstrip("\r\n")
        ]
        if broken:
            raise Unauthorized(
                f"{where}: {' and '.join(broken)} ends with a line break; use `echo -n`, or --from-literal"
            )
        return Credentials(username, password)

    return read


__all__ = ["InputError", "reader"]
