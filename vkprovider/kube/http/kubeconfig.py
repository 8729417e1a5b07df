"""Read kubeconfigs: find, merge, select a context. Opens files, but no connection.

https://kubernetes.io/docs/concepts/configuration/organize-cluster-access-kubeconfig/ has the merge rules: the
first file that names a cluster, a user, a context or the current context wins; relative paths are relative to the file
that contains them.
"""

import base64
import binascii
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from vkprovider.api.errors import InputError

_SECTIONS: Final = {"clusters": "cluster", "users": "user", "contexts": "context"}
_FILE_FIELDS: Final = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
_Merged = dict[str, dict[str, dict[str, Any]]]
_Loader: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


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


def paths_of(kubeconfig: str) -> list[Path]:
    """Split `a:b` into existing files; missing ones are skipped, as in kubectl, unless all are missing.

    Raises:
        InputError: `KubeconfigMissing`.
    """
    named = [Path(part).expanduser() for part in kubeconfig.split(os.pathsep) if part]
    found = [path for path in named if path.is_file()]
    if not found:
        raise InputError("KubeconfigMissing", f"no kubeconfig at {kubeconfig or '(empty)'}; set KUBECONFIG or pass one")
    return found


def read(kubeconfig: str, context: str | None = None) -> Entry:
    """Merge the files named by `kubeconfig` and resolve `context` (or the current one).

    Raises:
        InputError: `KubeconfigMissing`, `KubeconfigInvalid`.
    """
    merged, current = _merge(kubeconfig)
    return _resolve(merged, context or current, kubeconfig)


def contexts(kubeconfig: str) -> list[str]:
    """Return the names of the contexts in the files named by `kubeconfig`.

    Raises:
        InputError: `KubeconfigMissing`, `KubeconfigInvalid`.
    """
    return sorted(_merge(kubeconfig)[0]["contexts"])


def _merge(kubeconfig: str) -> tuple[_Merged, str]:
    """Return the entries of each section by name, and the current context; "" if there is none."""
    merged: _Merged = {section: {} for section in _SECTIONS}
    current = ""
    for path in paths_of(kubeconfig):
        document = _load(path)
        current = current or str(document.get("current-context") or "")
        for section, field in _SECTIONS.items():
            for item in document.get(section) or []:
                value = item.get(field) if isinstance(item, dict) else None
                if value is not None and not isinstance(value, dict):
                    raise InputError("KubeconfigInvalid", f"{path}: {section}[].{field} is not a mapping")
                if isinstance(item, dict) and "name" in item:
                    merged[section].setdefault(str(item["name"]), _absolute(value or {}, path.parent))
    return merged, current


def _resolve(merged: Mapping[str, Mapping[str, dict[str, Any]]], context: str, kubeconfig: str) -> Entry:
    if not context:
        raise InputError("KubeconfigInvalid", f"{kubeconfig}: no current-context; name a context")
    chosen = merged["contexts"].get(context)
    if chosen is None:
        known = ", ".join(sorted(merged["contexts"])) or "none"
        raise InputError("KubeconfigInvalid", f"{kubeconfig}: no context {context!r}; there are: {known}")
    cluster = merged["clusters"].get(str(chosen.get("cluster") or ""))
    if not cluster or not cluster.get("server"):
        raise InputError("KubeconfigInvalid", f"{kubeconfig}: context {context!r} names no cluster with a server")
    user = merged["users"].get(str(chosen.get("user") or ""), {})
    return Entry(cluster, user, str(chosen.get("namespace") or "default"), context)


def _load(path: Path) -> dict[str, Any]:
    try:
        document = yaml.load(path.read_bytes(), Loader=_Loader)  # noqa: S506 (the safe loader, in C where available)
    except (OSError, yaml.YAMLError) as error:
        # A YAML error quotes the offending line, which may contain a token: report its position only.
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}" if mark is not None else type(error).__name__
        raise InputError("KubeconfigInvalid", f"{path} cannot be read: {place}") from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise InputError("KubeconfigInvalid", f"{path} is not a kubeconfig: the top level is not a mapping")
    return document


def _absolute(fields: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Resolve the paths in an entry against the folder of its file."""
    return {
        name: str(folder.absolute() / Path(value).expanduser()) if name in _FILE_FIELDS and value else value
        for name, value in fields.items()
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
            raise InputError("KubeconfigInvalid", f"{name}-data is not base64") from None
    if path := fields.get(name):
        try:
            return Path(str(path)).read_bytes()
        except OSError as error:
            raise InputError("KubeconfigInvalid", f"{name} {path} cannot be read: {error.strerror}") from None
    return None
