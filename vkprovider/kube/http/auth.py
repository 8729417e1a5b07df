"""Credentials for the API server: `kubernetes_asyncio` fills a `Configuration`, which `ClusterAccess` is made of.

`kubeconfig` and `plugin` prepare what the loaders read; a token file, in a cluster or named by a kubeconfig, is read
here, because it changes while the process runs.
"""

import contextlib
import os
import ssl
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from kubernetes_asyncio import client, config
from kubernetes_asyncio.config.incluster_config import InClusterConfigLoader

from tunnels.outgoing.proxies import ProxyUnsupportedError, proxy_of
from vkprovider.api.errors import InputError, Unauthorized, shorten
from vkprovider.api.reasons import StartReason
from vkprovider.kube.http import kubeconfig as kubeconfigs
from vkprovider.kube.http import plugin

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
TOKEN_AGE_S_MAX: Final = 60.0
"""A kubelet rotates projected tokens 20 % before they expire; reading them once a minute is soon enough."""
IN_CLUSTER: Final = "in-cluster"


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """How to reach an API server.

    Attributes:
        server: `https://10.96.0.1:443`, without a trailing slash.
        namespace: The context's or the ServiceAccount's.
        authorization: The header's value, `Bearer …`; empty with client certificates.
        tls: None for `http://`.
        tls_server_name: The name expected in the certificate, if not the URL's host.
        proxy: The URL of the proxy through which it is reached; None for none.
        context: The kubeconfig's; empty without one.
        renew: Returns the current value of the header; None if it cannot change.
        expires_at: When all of this must be loaded again; None: only after a 401.
    """

    server: str
    namespace: str
    authorization: str = ""
    tls: ssl.SSLContext | None = None
    tls_server_name: str | None = None
    proxy: str | None = None
    context: str = ""
    renew: Callable[[], Awaitable[str]] | None = None
    expires_at: datetime | None = None


async def load(kubeconfig: str | None = None, context: str | None = None) -> ClusterAccess:
    """Load credentials as client-go does: the argument, KUBECONFIG, the ServiceAccount, `~/.kube/config`.

    Raises:
        InputError: `KubeconfigMissing`, `KubeconfigInvalid`, `KubeconfigUnsupported`, `TokenMissing`,
            `ServiceAccountInvalid`.
        Unauthorized: A login plugin refused.
    """
    named = kubeconfig or os.environ.get("KUBECONFIG")
    if not named and not context and _is_in_cluster():
        return _in_cluster(os.environ, SERVICE_ACCOUNT)
    named = named or "~/.kube/config"
    entry = kubeconfigs.read(named, context)
    access = await _from(entry)
    if "auth-provider" not in entry.user:
        return access

    async def log_in_again() -> str:
        return (await _from(kubeconfigs.read(named, entry.context))).authorization

    return replace(access, renew=log_in_again)


def context_of(kubeconfig: str | None, context: str | None) -> str:
    """Return the name of the context that `load` uses with these arguments; `in-cluster` without a kubeconfig.

    Raises:
        InputError: The kubeconfig is missing or wrong.
    """
    named = kubeconfig or os.environ.get("KUBECONFIG")
    if not named and not context and _is_in_cluster():
        return IN_CLUSTER
    return kubeconfigs.read(named or "~/.kube/config", context).context


def _is_in_cluster() -> bool:
    addressed = os.environ.get("KUBERNETES_SERVICE_HOST") and os.environ.get("KUBERNETES_SERVICE_PORT")
    return bool(addressed) and (SERVICE_ACCOUNT / "token").is_file()


def _in_cluster(environ: Mapping[str, str], folder: Path) -> ClusterAccess:
    namespace = "default"
    with contextlib.suppress(OSError):
        namespace = (folder / "namespace").read_text().strip() or namespace
    token = folder / "token"
    settings = client.Configuration()
    try:
        InClusterConfigLoader(
            token_filename=str(token),
            cert_filename=str(folder / "ca.crt"),
            try_refresh_token=False,  # by local time, and without stripping it: `renew` does so
            environ=dict(environ),
        ).load_and_set(settings)
    except (config.ConfigException, OSError) as error:
        raise InputError(StartReason.SERVICE_ACCOUNT_INVALID, f"{folder} cannot be used: {error}") from None
    return replace(_access(settings), namespace=namespace, authorization=_bearer(token), renew=_from_file(token))


async def _from(entry: kubeconfigs.Entry) -> ClusterAccess:
    """Log in by a context of a kubeconfig.

    Raises:
        InputError: `KubeconfigInvalid`, `KubeconfigUnsupported`, `TokenMissing`.
        Unauthorized: A login plugin refused.
    """
    _check(str(entry.cluster["server"]), entry.context)
    granted = await plugin.run(entry)
    user = {name: value for name, value in entry.user.items() if name not in {"exec", "tokenFile"}}
    token_file = Path(entry.user["tokenFile"]) if "tokenFile" in entry.user else None
    if token_file is not None:  # it goes before `token`, as in kubectl
        user["token"] = _bearer(token_file).removeprefix("Bearer ")
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
        renew=None if token_file is None else _from_file(token_file),
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
    try:
        proxy = proxy_of(server, os.environ, settings.proxy or "")
    except ProxyUnsupportedError as error:
        raise InputError(
            StartReason.KUBECONFIG_UNSUPPORTED, f"{server}: {error}; or use a kubeconfig for `kubectl proxy`"
        ) from None
    return ClusterAccess(
        server=server,
        namespace="default",
        authorization=str(settings.api_key.get("BearerToken") or ""),
        tls=_tls(settings) if server.startswith("https://") else None,
        tls_server_name=settings.tls_server_name or None,
        proxy=proxy,
    )


def _tls(settings: client.Configuration) -> ssl.SSLContext:
    """Make a TLS context; with an explicit CA the system's CAs (megabytes) are not loaded.

    Raises:
        InputError: `KubeconfigInvalid`: a certificate or key that OpenSSL does not accept.
    """
    try:
        context = ssl.create_default_context(cafile=settings.ssl_ca_cert)
        # The CAs of many clusters lack extensions that Python ≥ 3.13 requires by default and kubectl does not.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if not settings.verify_ssl:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if settings.cert_file and settings.key_file:
            context.load_cert_chain(settings.cert_file, settings.key_file)
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
        raise InputError(StartReason.KUBECONFIG_INVALID, f"certificate or key is not usable PEM: {reason}") from None
    return context


def _bearer(path: Path) -> str:
    try:
        token = path.read_text().strip()
    except OSError as error:
        raise InputError(StartReason.TOKEN_MISSING, f"token file {path} cannot be read: {error.strerror}") from None
    return f"Bearer {token}" if token else ""


def _from_file(path: Path) -> Callable[[], Awaitable[str]]:
    async def renew() -> str:
        return _bearer(path)

    return renew
