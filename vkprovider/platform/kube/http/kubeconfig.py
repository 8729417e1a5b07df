"""Mends a kubeconfig before the loader of `kubernetes_asyncio` reads it: it means what it means to kubectl.

The library reads and merges the files, and makes a `Configuration` of one context. In between, one cluster and one user
are taken out here, because the library

* lets the last file's `current-context` win, where kubectl takes the first one's;
* resolves a user's paths against the folder of the cluster's file, and no plugin's command at all;
* takes an empty field for a set one, fails without a user, and ignores `as`, which would mean more rights than wanted;
* keeps inline keys in files for as long as the process runs.

https://kubernetes.io/docs/concepts/configuration/organize-cluster-access-kubeconfig/ has kubectl's rules.
"""

import base64
import binascii
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml
from kubernetes_asyncio.config.kube_config import ConfigNode, KubeConfigMerger

from vkprovider.platform.errors import InputError
from vkprovider.platform.reasons import StartReason

_PATHS: Final = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
_INLINE: Final = ("certificate-authority", "client-certificate", "client-key")
_KNOWN: Final = {"token", "tokenFile", "exec", "auth-provider", "username", "password", "extensions"} | {
    f"client-{part}{suffix}" for part in ("certificate", "key") for suffix in ("", "-data")
}
"""Fields of a user that are heeded; any other could mean fewer rights."""


@dataclass(frozen=True, slots=True)
class Entry:
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


def read(kubeconfig: str, context: str | None = None) -> Entry:
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
    return Entry(cluster, user, str(chosen.get("namespace") or "default"), name)


def document(entry: Entry, folder: Path) -> dict[str, Any]:
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
