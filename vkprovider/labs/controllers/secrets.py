"""Secrets of the namespace of logins, read one by one when they are needed; nothing of them is kept."""

from collections.abc import Collection

from vkprovider.lablet import names
from vkprovider.lablet.reasons import Trouble
from vkprovider.labs.pure.worker.secrets import device_secret_refusal, move_command
from vkprovider.platform.errors import Forbidden, InputError
from vkprovider.platform.objects import Secret
from vkprovider.platform.reasons import Reason
from vkprovider.platform.runtime.context import Context


async def read_secret(ctx: Context, name: str, *, reason: Reason, keys: str, used_for: str) -> Secret:
    """Read a Secret of the namespace of logins.

    Args:
        ctx: The replica.
        name: The Secret's.
        reason: Of the error that is raised.
        keys: The keys that it should have, in words, for the admin who has to create it.
        used_for: The label that it should have; the caller checks whether it does.

    Raises:
        InputError: It does not exist, or may not be read.
    """
    where = f"Secret {ctx.logins_namespace}/{name}"
    try:
        secret = await ctx.api.secrets.get(name)
    except Forbidden as error:
        raise InputError(reason, f"{where} cannot be read: {error.message}") from None
    if secret is None:
        label = f"{names.LABEL_USED_FOR}={used_for}"
        text = f"{where} does not exist; create it with keys {keys} and the label {label}"
        if ctx.logins_namespace != ctx.namespace:
            text += f". Those that an earlier version had in {ctx.namespace} move by: "
            text += move_command(ctx.namespace, ctx.logins_namespace)
        raise InputError(reason, text)
    return secret


async def read_device_secret(ctx: Context, name: str, workers: Collection[str]) -> dict[str, str]:
    """Read the credentials of devices, which learners see.

    Args:
        ctx: The replica.
        name: The Secret's.
        workers: The names of the Secrets that CMLWorkers name: no learner sees what they hold.

    Raises:
        InputError: `DeviceSecretInvalid`, `SecretNotAllowed`.
    """
    keys = "username and password, or CONTAINER.username and so on"
    secret = await read_secret(
        ctx, name, reason=Trouble.DEVICE_SECRET_INVALID, keys=keys, used_for=names.USED_FOR_DEVICES
    )
    if refusal := device_secret_refusal(secret.metadata, ctx.logins_namespace, is_workers=name in workers):
        raise InputError(Trouble.SECRET_NOT_ALLOWED, refusal)
    try:
        return {key: value.decode() for key, value in secret.data.items()}
    except UnicodeDecodeError:
        where = f"Secret {ctx.logins_namespace}/{name}"
        raise InputError(Trouble.DEVICE_SECRET_INVALID, f"{where} holds bytes that are not text") from None
