"""Credentials for the API server: in-cluster ServiceAccount, kubeconfig, or a login plugin.

The common forms are read here, without a client library. Kubeconfigs with `exec` plugins, an `auth-provider` or a
password go through `kubernetes_asyncio`, imported only then.
"""

import contextlib
import os
import ssl
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from vkprovider.api.errors import InputError, Unauthorized, shorten
from vkprovider.kube.http import kubeconfig as kubeconfigs

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
TOKEN_AGE_S_MAX: Final = 60.0
"""A kubelet rotates projected tokens 20 % before they expire; reading them once a minute is soon enough."""

_SUPPORTED: Final = {"token", "tokenFile", "extensions"} | {
    f"client-{part}{suffix}" for part in ("certificate", "key") for suffix in ("", "-data")
}
_BY_LIBRARY: Final = {"exec", "auth-provider", "username", "password"}


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach an API server.

    Attributes:
        server: `https://10.96.0.1:443`, without a trailing slash.
        namespace: The context's or the ServiceAccount's.
        authorization: The header's value, `Bearer …`; empty with client certificates.
        tls: None for `http://`.
        tls_server_name: The name expected in the certificate, if not the URL's host.
        context: The kubeconfig's; empty without one.
        renew: Returns the current value of the header; None if it cannot change.
    """

    server: str
    namespace: str
    authorization: str = ""
    tls: ssl.SSLContext | None = None
    tls_server_name: str | None = None
    context: str = ""
    renew: Callable[[], Awaitable[str]] | None = None


async def load(kubeconfig: str | None = None, context: str | None = None) -> Access:
    """Load credentials as client-go does: the argument, KUBECONFIG, the ServiceAccount, `~/.kube/config`.

    Raises:
        InputError: `KubeconfigMissing`, `KubeconfigInvalid`, `KubeconfigUnsupported`.
        Unauthorized: A login plugin refused.
    """
    named = kubeconfig or os.environ.get("KUBECONFIG")
    if not named and not context and "KUBERNETES_SERVICE_HOST" in os.environ and (SERVICE_ACCOUNT / "token").is_file():
        return _in_cluster(os.environ, SERVICE_ACCOUNT)
    named = named or "~/.kube/config"
    entry = kubeconfigs.read(named, context)
    if entry.cluster.get("proxy-url"):
        raise InputError("KubeconfigUnsupported", f"context {entry.context!r}: proxy-url is not supported")
    foreign = {name for name, value in entry.user.items() if value} - _SUPPORTED
    if foreign - _BY_LIBRARY:  # such as `as`: ignoring it would act with more rights than configured
        names = ", ".join(sorted(foreign - _BY_LIBRARY))
        raise InputError("KubeconfigUnsupported", f"context {entry.context!r}: user fields not supported: {names}")
    access = _access(entry)
    return await _through_library(named, entry, access) if foreign else access


def _in_cluster(environ: Mapping[str, str], folder: Path) -> Access:
    host, port = environ["KUBERNETES_SERVICE_HOST"], environ.get("KUBERNETES_SERVICE_PORT", "443")
    host = f"[{host}]" if ":" in host else host
    namespace = "default"
    with contextlib.suppress(OSError):
        namespace = (folder / "namespace").read_text().strip() or namespace
    try:
        authority = (folder / "ca.crt").read_text()
    except OSError as error:
        raise InputError("ServiceAccountInvalid", f"{folder}/ca.crt cannot be read: {error.strerror}") from None
    token = folder / "token"
    return Access(
        server=f"https://{host}:{port}",
        namespace=namespace,
        authorization=_bearer(token),
        tls=_tls(authority, None, None, verify=True),
        renew=_from_file(token),
    )


def _access(entry: kubeconfigs.Entry) -> Access:
    """Return what the kubeconfig itself contains."""
    server = _checked(str(entry.cluster["server"]), entry.context)
    token_file = entry.user.get("tokenFile")
    authorization = f"Bearer {token}" if (token := entry.user.get("token")) else ""
    tls = None
    if server.startswith("https://"):
        authority = kubeconfigs.inline_or_file(entry.cluster, "certificate-authority")
        tls = _tls(
            authority.decode(errors="replace") if authority else None,
            kubeconfigs.inline_or_file(entry.user, "client-certificate"),
            kubeconfigs.inline_or_file(entry.user, "client-key"),
            verify=not entry.cluster.get("insecure-skip-tls-verify"),
        )
    return Access(
        server=server,
        namespace=entry.namespace,
        authorization=_bearer(Path(token_file)) if token_file else authorization,
        tls=tls,
        tls_server_name=str(entry.cluster["tls-server-name"]) if entry.cluster.get("tls-server-name") else None,
        context=entry.context,
        renew=_from_file(Path(token_file)) if token_file else None,
    )


def _checked(server: str, context: str) -> str:
    try:
        url = urlsplit(server)
        if url.scheme in {"http", "https"} and url.hostname and (url.port is None or url.port > 0):
            return server.rstrip("/")
    except ValueError:
        pass
    raise InputError("KubeconfigInvalid", f"context {context!r}: server {server} is not an http(s) URL")


def _bearer(path: Path) -> str:
    try:
        return f"Bearer {path.read_text().strip()}"
    except OSError as error:
        raise InputError("TokenMissing", f"token file {path} cannot be read: {error.strerror}") from None


def _from_file(path: Path) -> Callable[[], Awaitable[str]]:
    async def renew() -> str:
        return _bearer(path)

    return renew


def _tls(authority: str | None, certificate: bytes | None, key: bytes | None, *, verify: bool) -> ssl.SSLContext:
    """Make a TLS context; with an explicit CA the system's CAs (megabytes) are not loaded.

    Raises:
        InputError: `KubeconfigInvalid`: a certificate or key that OpenSSL does not accept.
    """
    try:
        context = ssl.create_default_context(cadata=authority)
        # The CAs of many clusters lack extensions that Python ≥ 3.13 requires by default and kubectl does not.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if not verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if certificate is not None and key is not None:
            # Python's ssl loads certificates only from files; this one exists for the call.
            with tempfile.TemporaryDirectory(prefix="vkprovider-") as folder:  # mode 0700
                chain = Path(folder) / "pair.pem"
                chain.write_bytes(certificate + b"\n" + key)
                context.load_cert_chain(chain)
    except (ssl.SSLError, ValueError) as error:
        reason = getattr(error, "reason", None) or str(error)
        raise InputError("KubeconfigInvalid", f"certificate or key is not usable PEM: {reason}") from None
    return context


async def _through_library(kubeconfig: str, entry: kubeconfigs.Entry, plain: Access) -> Access:
    """Log in through `kubernetes_asyncio`, which supports plugins, cloud providers and passwords."""
    from kubernetes_asyncio import client, config  # noqa: PLC0415 (40 MB; only these logins need it)

    files = os.pathsep.join(str(path) for path in kubeconfigs.paths_of(kubeconfig))

    async def log_in() -> Any:
        settings = client.Configuration()
        try:
            loader = await config.load_kube_config(
                config_file=files, context=entry.context, client_configuration=settings, persist_config=False
            )
        except Exception as error:  # noqa: BLE001 (the library raises any type: the login failed)
            text = f"context {entry.context!r}: the login failed: {type(error).__name__}: {error}"
            raise Unauthorized(shorten(text)) from None
        return settings, loader

    settings, loader = await log_in()

    async def renew() -> str:
        if loader.provider in {"gcp", "oidc"}:
            return str((await log_in())[0].api_key.get("BearerToken", ""))
        if "exec" in entry.user:
            try:
                await loader.load_from_exec_plugin()  # runs the plugin only once its credential has expired
            except Exception as error:  # noqa: BLE001 (as above)
                raise Unauthorized(f"context {entry.context!r}: the login plugin failed: {error}") from None
            return str(getattr(loader, "token", ""))
        return str(settings.api_key.get("BearerToken", ""))

    tls = plain.tls
    if tls is not None and settings.cert_file and "exec" in entry.user:
        tls.load_cert_chain(settings.cert_file, settings.key_file)  # a plugin may return a certificate
    return replace(plain, authorization=str(settings.api_key.get("BearerToken", "")), renew=renew)
