"""Login plugins of kubeconfigs, run as client-go runs them (client-go/plugin/pkg/client/auth/exec).

The library's own runner has no deadline, cannot tell a plugin about the cluster, and forgets when a certificate
expires. What a plugin returns takes the place of `exec` in the user's fields, before the loader sees them.
"""

import asyncio
import base64
import contextlib
import json
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from vkprovider.platform.errors import InputError, Unauthorized, shorten
from vkprovider.platform.kube.http import kubeconfig
from vkprovider.platform.reasons import StartReason

RUN_S_MAX: Final = 60.0
INTERACTIVE_S_MAX: Final = 300.0
"""The deadline where a human answers the plugin."""

_VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_EXTENSION: Final = "client.authentication.k8s.io/exec"
"""The name of a cluster's extension that is meant for plugins."""
_INSTEAD: Final = {"token", "tokenFile", "username", "password", "client-certificate", "client-certificate-data"}


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


class _Credential(msgspec.Struct, frozen=True, rename="camel"):
    """An ExecCredential: `{"apiVersion": …, "kind": "ExecCredential", "status": {"token": "…"}}`."""

    api_version: str = ""
    kind: str = ""
    status: _Status | None = None


_decoder: Final = msgspec.json.Decoder(_Credential)


@dataclass(frozen=True, slots=True)
class Granted:
    """What a plugin has returned.

    Attributes:
        user: Fields of a kubeconfig's user: `{"token": "…"}`, or a certificate and its key.
        expires_at: When it must run again; None: only after a 401.
    """

    user: Mapping[str, str]
    expires_at: datetime | None


async def run(entry: kubeconfig.Entry) -> Granted | None:
    """Run the plugin of a context; None if it has none, or credentials that go before it, as in kubectl.

    Raises:
        InputError: `KubeconfigInvalid`: it is not described properly.
        Unauthorized: It failed, or took too long.
    """
    plugin = entry.user.get("exec")
    if not plugin or _INSTEAD & set(entry.user):
        return None
    if not isinstance(plugin, dict) or not plugin.get("command") or plugin.get("apiVersion") not in _VERSIONS:
        text = f"context {entry.context!r}: exec needs a command and an apiVersion, one of {', '.join(_VERSIONS)}"
        raise InputError(StartReason.KUBECONFIG_INVALID, text)
    mode = plugin.get("interactiveMode") or "IfAvailable"
    interactive = mode != "Never" and sys.stdin is not None and sys.stdin.isatty()
    if mode == "Always" and not interactive:
        raise _failed(plugin, "it asks a human, and standard input is no terminal")
    said = await _output(plugin, _environment(plugin, entry, interactive=interactive), interactive=interactive)
    return _granted(plugin, said)


def _environment(plugin: Mapping[str, Any], entry: kubeconfig.Entry, *, interactive: bool) -> dict[str, str]:
    """Return the environment of a plugin, KUBERNETES_EXEC_INFO included."""
    spec: dict[str, Any] = {"interactive": interactive}
    if plugin.get("provideClusterInfo"):
        spec["cluster"] = _cluster(entry.cluster)
    info = {"apiVersion": plugin["apiVersion"], "kind": "ExecCredential", "spec": spec}
    try:
        added = {str(item["name"]): str(item["value"]) for item in plugin.get("env") or []}
    except (KeyError, TypeError):
        raise InputError(
            StartReason.KUBECONFIG_INVALID, f"context {entry.context!r}: exec.env needs names and values"
        ) from None
    return {**os.environ, **added, "KUBERNETES_EXEC_INFO": json.dumps(info)}


def _cluster(cluster: Mapping[str, Any]) -> dict[str, Any]:
    names = ("server", "tls-server-name", "insecure-skip-tls-verify", "proxy-url", "disable-compression")
    found = {name: cluster[name] for name in names if cluster.get(name)}
    authority = kubeconfig.inline_or_file(cluster, "certificate-authority")
    if authority is not None:
        found["certificate-authority-data"] = base64.b64encode(authority).decode()
    for item in cluster.get("extensions") or []:
        if isinstance(item, dict) and item.get("name") == _EXTENSION:
            found["config"] = item.get("extension")
    return found


async def _output(plugin: Mapping[str, Any], environ: Mapping[str, str], *, interactive: bool) -> bytes:
    """Run a program within its deadline, and return what it has printed.

    Raises:
        Unauthorized: It failed.
    """
    limit_s = INTERACTIVE_S_MAX if interactive else RUN_S_MAX
    words = [str(plugin["command"]), *(str(word) for word in plugin.get("args") or [])]
    try:
        process = await asyncio.create_subprocess_exec(
            *words,
            env=environ,
            stdin=None if interactive else DEVNULL,
            stdout=PIPE,
            stderr=None if interactive else PIPE,  # a prompt, which the human must see
            start_new_session=not interactive,
        )
    except OSError as error:
        raise _failed(plugin, f"{error.strerror}. {plugin.get('installHint') or ''}".strip()) from None
    try:
        async with asyncio.timeout(limit_s):
            output, trouble = await process.communicate()
    except TimeoutError:
        raise _failed(plugin, f"it did not end within {limit_s:g} s") from None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill() if interactive else os.killpg(process.pid, signal.SIGKILL)  # with its children
            await process.wait()
    if process.returncode:
        text = (trouble or b"").decode(errors="replace").strip()
        raise _failed(plugin, f"process returned {process.returncode}" + (f". {text}" if text else ""))
    return output


def _granted(plugin: Mapping[str, Any], output: bytes) -> Granted:
    """Read an ExecCredential.

    Raises:
        Unauthorized: It is none, or grants nothing.
    """
    try:
        credential = _decoder.decode(output)
    except (msgspec.MsgspecError, UnicodeDecodeError):  # its text may contain a token
        raise _failed(plugin, "what it printed is not an ExecCredential in JSON") from None
    if credential.api_version != plugin["apiVersion"]:
        raise _failed(plugin, f"it returned version {credential.api_version}, not {plugin['apiVersion']}")
    status = credential.status or _Status()
    pair = (status.client_certificate_data, status.client_key_data)
    if (not status.token and not any(pair)) or any(pair) != all(pair):
        raise _failed(plugin, "it returned neither a token nor a certificate with its key")
    user = {"token": status.token} if status.token else {}
    expires = [] if status.expiration_timestamp is None else [_utc(status.expiration_timestamp)]
    if all(pair):
        encoded = [base64.b64encode(text.encode()).decode() for text in pair]
        user |= {"client-certificate-data": encoded[0], "client-key-data": encoded[1]}
        expires.append(_end_of(plugin, pair[0]))
    return Granted(user, min(expires, default=None))


def _end_of(plugin: Mapping[str, Any], certificate: str) -> datetime:
    from cryptography import x509  # noqa: PLC0415 (30 ms; few plugins return a certificate)

    try:
        return x509.load_pem_x509_certificate(certificate.encode()).not_valid_after_utc
    except ValueError:
        raise _failed(plugin, "its certificate is not PEM") from None


def _utc(time: datetime) -> datetime:
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def _failed(plugin: Mapping[str, Any], why: str) -> Unauthorized:
    return Unauthorized(shorten(f"the login plugin {plugin['command']} failed: {why}"))
