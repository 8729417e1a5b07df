"""Log in by a kubeconfig: `kubernetes_asyncio` fills a `Configuration`, which `ClusterAccess` is made of.

`kubeconfig` prepares what the loaders read; a token file is read here, because it changes while the process runs.
"""

import ssl
import tempfile
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from kubernetes_asyncio import client, config

from vkprovider.platform.errors import InputError, Unauthorized, shorten
from vkprovider.platform.kube.http import kubeconfig as kubeconfigs
from vkprovider.platform.kube.http.credentials import ClusterAccess, bearer, proxy_for, renewed_from, trust_in
from vkprovider.platform.kube.http.kubeconfig import run_plugin
from vkprovider.platform.reasons import StartReason


async def log_in(kubeconfig: str, context: str | None) -> ClusterAccess:
    """Log in by a context of a kubeconfig, or by its current one.

    Raises:
        InputError: `KubeconfigMissing`, `KubeconfigInvalid`, `KubeconfigUnsupported`, `TokenMissing`.
        Unauthorized: A login plugin refused.
    """
    entry = kubeconfigs.read(kubeconfig, context)
    access = await _from(entry)
    if "auth-provider" not in entry.user:
        return access

    async def log_in_again() -> str:
        return (await _from(kubeconfigs.read(kubeconfig, entry.context))).authorization

    return replace(access, renew=log_in_again)


async def log_in_with(token: str, kubeconfig: str, context: str | None) -> ClusterAccess:
    """Log in with a token at the API server of a context, or of the current one; its own user is not looked at.

    Raises:
        InputError: `KubeconfigMissing`, `KubeconfigInvalid`, `KubeconfigUnsupported`.
    """
    return await _from(replace(kubeconfigs.read(kubeconfig, context), user={"token": token}))


async def _from(entry: kubeconfigs.ContextEntry) -> ClusterAccess:
    """Log in by a context of a kubeconfig.

    Raises:
        InputError: `KubeconfigInvalid`, `KubeconfigUnsupported`, `TokenMissing`.
        Unauthorized: A login plugin refused.
    """
    _check(str(entry.cluster["server"]), entry.context)
    granted = await run_plugin(entry)
    user = {name: value for name, value in entry.user.items() if name not in {"exec", "tokenFile"}}
    token_file = Path(entry.user["tokenFile"]) if "tokenFile" in entry.user else None
    if token_file is not None:  # it goes before `token`, as in kubectl
        user["token"] = bearer(token_file).removeprefix("Bearer ")
    if granted is not None:
        user |= granted.user
    settings = client.Configuration()
    with tempfile.TemporaryDirectory(prefix="vkprovider-") as folder:  # mode 0700
        document = kubeconfigs.document(replace(entry, user=user), Path(folder))
        try:
            await config.load_kube_config_from_dict(document, client_configuration=settings, temp_file_path=folder)
        except Exception as error:  # noqa: BLE001 (the library raises any type)
            text = shorten(f"context {entry.context!r}: the login failed: {type(error).__name__}: {error}")
            if "auth-provider" in user:
                raise Unauthorized(text) from None
            raise InputError(StartReason.KUBECONFIG_INVALID, text) from None
        access = _access(settings)
    return replace(
        access,
        namespace=entry.namespace,
        context=entry.context,
        renew=None if token_file is None else renewed_from(token_file),
        expires_at=None if granted is None else granted.expires_at,
    )


def _check(server: str, context: str) -> None:
    try:
        url = urlsplit(server)
        if url.scheme in {"http", "https"} and url.hostname and (url.port is None or url.port > 0):
            return
    except ValueError:
        pass
    raise InputError(StartReason.KUBECONFIG_INVALID, f"context {context!r}: server {server} is not an http(s) URL")


def _access(settings: client.Configuration) -> ClusterAccess:
    """Return the access that a filled `Configuration` describes.

    Raises:
        InputError: `KubeconfigInvalid`, `KubeconfigUnsupported`.
    """
    server = str(settings.host)
    return ClusterAccess(
        server=server,
        namespace="default",
        authorization=str(settings.api_key.get("BearerToken") or ""),
        tls=_tls(settings) if server.startswith("https://") else None,
        tls_server_name=settings.tls_server_name or None,
        proxy=proxy_for(server, settings.proxy or ""),
    )


def _tls(settings: client.Configuration) -> ssl.SSLContext:
    """Make a TLS context.

    Raises:
        InputError: `KubeconfigInvalid`: a certificate or key that OpenSSL does not accept.
    """
    try:
        context = trust_in(settings.ssl_ca_cert)
        if not settings.verify_ssl:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if settings.cert_file and settings.key_file:
            context.load_cert_chain(settings.cert_file, settings.key_file)
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
        raise InputError(StartReason.KUBECONFIG_INVALID, f"certificate or key is not usable PEM: {reason}") from None
    return context
