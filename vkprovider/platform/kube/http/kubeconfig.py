"""Mends a kubeconfig before `kubernetes_asyncio` reads it, and runs its login plugins as client-go does.

The library reads and merges the files, and makes a `Configuration` of one context. In between, one cluster and one user
are taken out here, because the library

* lets the last file's `current-context` win, where kubectl takes the first one's;
* resolves a user's paths against the folder of the cluster's file, and no plugin's command at all;
* takes an empty field for a set one, fails without a user, and ignores `as`, which would mean more rights than wanted;
* keeps inline keys in files for as long as the process runs.

https://kubernetes.io/docs/concepts/configuration/organize-cluster-access-kubeconfig/ has kubectl's rules.

Plugins: the library's own runner has no deadline, cannot tell a plugin about the cluster, and forgets when a
certificate expires. What a plugin returns takes the place of `exec` in the user's fields, before the loader sees them.
"""

import asyncio
import base64
import binascii
import contextlib
import json
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml
from kubernetes_asyncio.config.kube_config import ConfigNode, KubeConfigMerger

from vkprovider.platform.errors import InputError, Unauthorized, shorten
from vkprovider.platform.reasons import StartReason

_PATHS: Final = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
_INLINE: Final = ("certificate-authority", "client-certificate", "client-key")
_KNOWN: Final = {"token", "tokenFile", "exec", "auth-provider", "username", "password", "extensions"} | {
    f"client-{part}{suffix}" for part in ("certificate", "key") for suffix in ("", "-data")
}
"""Fields of a user that are heeded; any other could mean fewer rights."""


@dataclass(frozen=True, slots=True)
class ContextEntry:
    """One context, resolved.

    Attributes:
        cluster: `{"server": "https://10.0.0.1:6443", "certificate-authority-data": "LS0…"}`, paths absolute.
        user: `{"token": "…"}`, `{"client-certificate-data": …, "client-key-data": …}`, `{"exec": {…}}` …
        namespace: The context's namespace, or `default`.
        context: Its name.
    """

    cluster: Mapping[str, Any]
    user: Mapping[str, Any]
    namespace: str
    context: str


def read(kubeconfig: str, context: str | None = None) -> ContextEntry:
    """Merge the files named by `kubeconfig` and resolve `context` (or the current one).

    Raises:
        InputError: `KubeconfigMissing`, `KubeconfigInvalid`, `KubeconfigUnsupported`.
    """
    merger = _merged(kubeconfig)
    current = (config.get("current-context") for config in merger.config_files.values())
    name = context or next((str(value) for value in current if value), "")
    if not name:
        raise InputError(StartReason.KUBECONFIG_INVALID, f"{kubeconfig}: no current-context; name a context")
    chosen = _named(merger, "contexts", "context", name)
    if chosen is None:
        known = ", ".join(sorted(str(node.value["name"]) for node in _nodes(merger, "contexts"))) or "none"
        raise InputError(StartReason.KUBECONFIG_INVALID, f"{kubeconfig}: no context {name!r}; there are: {known}")
    cluster = _named(merger, "clusters", "cluster", str(chosen.get("cluster") or ""))
    if not cluster or not cluster.get("server"):
        raise InputError(
            StartReason.KUBECONFIG_INVALID, f"{kubeconfig}: context {name!r} names no cluster with a server"
        )
    user = _named(merger, "users", "user", str(chosen.get("user") or "")) or {}
    if foreign := sorted(set(user) - _KNOWN):
        text = f"context {name!r}: user fields not supported: {', '.join(foreign)}; remove them, or use another user"
        raise InputError(StartReason.KUBECONFIG_UNSUPPORTED, text)
    return ContextEntry(cluster, user, str(chosen.get("namespace") or "default"), name)


def document(entry: ContextEntry, folder: Path) -> dict[str, Any]:
    """Return a kubeconfig with this context alone, for the library's loader; its inline certificates go into `folder`.

    Raises:
        InputError: `KubeconfigInvalid`: a certificate or a key is not base64.
    """
    name = entry.context
    cluster, user = _in_files(entry.cluster, folder), _in_files(entry.user, folder)
    return {
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": user}],
    }


def inline_or_file(fields: Mapping[str, Any], name: str) -> bytes | None:
    """Return the bytes of `<name>-data` (base64, which wins) or of the file at `<name>`; None if neither is set.

    Raises:
        InputError: `KubeconfigInvalid`: not base64, or the file cannot be read.
    """
    if data := fields.get(f"{name}-data"):
        try:
            return base64.b64decode(str(data), validate=True)
        except binascii.Error:
            raise InputError(StartReason.KUBECONFIG_INVALID, f"{name}-data is not base64") from None
    if path := fields.get(name):
        try:
            return Path(str(path)).read_bytes()
        except OSError as error:
            raise InputError(
                StartReason.KUBECONFIG_INVALID, f"{name} {path} cannot be read: {error.strerror}"
            ) from None
    return None


def _merged(kubeconfig: str) -> KubeConfigMerger:
    """Let the library read and merge the files; missing and empty ones are skipped, unless all are missing."""
    named = [Path(part).expanduser() for part in kubeconfig.split(os.pathsep) if part]
    found = [path for path in named if path.is_file()]
    if not found:
        raise InputError(
            StartReason.KUBECONFIG_MISSING, f"no kubeconfig at {kubeconfig or '(empty)'}; set KUBECONFIG or pass one"
        )
    filled = [str(path.absolute()) for path in found if path.stat().st_size]
    if not filled:
        raise InputError(StartReason.KUBECONFIG_INVALID, f"{kubeconfig}: no current-context; the file is empty")
    try:
        return KubeConfigMerger(os.pathsep.join(filled))
    except yaml.MarkedYAMLError as error:  # it quotes the offending line, which may contain a token
        mark = error.problem_mark
        place = f"{mark.name} cannot be read: line {mark.line + 1}" if mark else f"{kubeconfig} is not YAML"
        raise InputError(StartReason.KUBECONFIG_INVALID, place) from None
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(
            StartReason.KUBECONFIG_INVALID, f"{kubeconfig} cannot be read: {type(error).__name__}"
        ) from None
    except (AttributeError, KeyError, TypeError):
        text = f"{kubeconfig} is not a kubeconfig: a level of it is not a mapping, or a list has items without name"
        raise InputError(StartReason.KUBECONFIG_INVALID, text) from None


def _nodes(merger: KubeConfigMerger, section: str) -> list[ConfigNode]:
    """Return the items of a section, each with the path of its file."""
    return list(merger.config.value[section]) if merger.config is not None else []


def _named(merger: KubeConfigMerger, section: str, field: str, name: str) -> dict[str, Any] | None:
    """Return one item's fields that are set, with absolute paths; None if there is no such item."""
    node = next((node for node in _nodes(merger, section) if str(node.value["name"]) == name), None)
    if node is None:
        return None
    fields = node.value.get(field) or {}
    if not isinstance(fields, dict):
        raise InputError(StartReason.KUBECONFIG_INVALID, f"{node.path}: {section}[].{field} is not a mapping")
    return _resolved({key: value for key, value in fields.items() if value}, Path(node.path or "").parent)


def _resolved(fields: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Resolve the paths in an item against the folder of its file."""
    for name in _PATHS:
        if name in fields:
            fields[name] = str(folder / Path(str(fields[name])).expanduser())
    plugin = fields.get("exec")
    if isinstance(plugin, dict) and os.sep in str(plugin.get("command", "")):  # else it is looked for on PATH
        fields["exec"] = {**plugin, "command": str(folder / str(plugin["command"]))}
    return fields


def _in_files(fields: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    written = {name: value for name, value in fields.items() if name.removesuffix("-data") not in _INLINE}
    for name in _INLINE:
        content = inline_or_file(fields, name)
        if content is not None:
            path = folder / name
            path.write_bytes(content)
            written[name] = str(path)
    return written


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


async def run_plugin(entry: ContextEntry) -> Granted | None:
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


def _environment(plugin: Mapping[str, Any], entry: ContextEntry, *, interactive: bool) -> dict[str, str]:
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
    authority = inline_or_file(cluster, "certificate-authority")
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
