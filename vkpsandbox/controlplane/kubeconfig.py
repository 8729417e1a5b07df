"""Read and write kubeconfigs."""

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from vkpsandbox.processes.process import write_atomically


def write_kubeconfig(
    path: Path, *, name: str, cluster: Mapping[str, Any], user: Mapping[str, Any], namespace: str = ""
) -> None:
    """Write a kubeconfig with one cluster, one user and one context, all of the same name.

    Args:
        path: The file; only its owner may read it.
        name: The name of all three.
        cluster: As in a kubeconfig: `{"server": "https://…", "certificate-authority-data": "…"}`.
        user: The credentials, as in a kubeconfig: `{"token": "…"}`, or see `certificate_user`.
        namespace: That of the context; none if empty.
    """
    context = {"cluster": name, "user": name} | ({"namespace": namespace} if namespace else {})
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": dict(cluster)}],
        "users": [{"name": name, "user": dict(user)}],
        "contexts": [{"name": name, "context": context}],
        "current-context": name,
    }
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_atomically(path, yaml.safe_dump(document, sort_keys=False).encode())


def cluster_entry(server: str, authority: Path) -> dict[str, str]:
    """Return the cluster at a URL, verified by a CA."""
    return {"server": server, "certificate-authority-data": _embedded(authority)}


def certificate_user(pki: Path, client: str) -> dict[str, str]:
    """Return the credentials of a client certificate."""
    return {
        "client-certificate-data": _embedded(pki / f"{client}.crt"),
        "client-key-data": _embedded(pki / f"{client}.key"),
    }


def read_cluster(path: Path) -> dict[str, Any]:
    """Return the only cluster of a kubeconfig."""
    cluster: dict[str, Any] = yaml.safe_load(path.read_text())["clusters"][0]["cluster"]
    return cluster


def _embedded(path: Path) -> str:
    """Return a file as a kubeconfig contains it."""
    return base64.b64encode(path.read_bytes()).decode()
