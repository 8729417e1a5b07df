"""The Pod of a workbench: on ordinary nodes, as restricted as Pod Security may demand, with all limits.

It is the only shape of a Pod without a RuntimeClass that the policy `vkprovider-confine-portal` lets the portal make.
"""

import hashlib
import hmac
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from vkprovider.lablet.podspec import RESTRICTED, RESTRICTED_CONTAINER
from vkprovider.portal.pure.identity import GROUPS_MAX, home_of, login_name, supplemental
from vkprovider.portal.pure.portalnames import bench_name, env_name, nss_name, pod_name, pull_name, secret_name
from vkprovider.portal.pure.workbench import BenchSize, BenchVolume, WorkbenchConfig

BENCH: Final = "workbench"
"""The name of its container."""
INIT: Final = "provision"
"""The name of the container that runs before it."""
ACCESS: Final = "access"
"""The key of what the portal proves itself by to the workbench, in the workbench's own Secret."""
FILES: Final = "/lab/files"
"""Where copied secrets are."""
_TOKEN_DIR: Final = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 (a path)
_TOKEN_S: Final = 3600
_GRACE_S: Final = 10
_ROOT_CA: Final = "kube-root-ca.crt"
Json = dict[str, Any]


def access_of(secret: bytes, namespace: str, request: str) -> str:
    """Return what the portal proves itself by to one workbench; every replica makes the same.

    Args:
        secret: Of the portal: the key of its cookies.
        namespace: Of the lab.
        request: The id of the request that it was made for.
    """
    return hmac.digest(secret, f"vkprovider-workbench {namespace} {request}".encode(), hashlib.sha256).hex()


class BenchUser(NamedTuple):
    """The user of a workbench.

    Attributes:
        key: Of the user.
        uid, gid: The numbers.
        groups: Numbers of further groups, by name.
    """

    key: str
    uid: int
    gid: int
    groups: Mapping[str, int] = {}


def bench_pod_spec(config: WorkbenchConfig, size: str, user: BenchUser, *, provision: bool = False) -> Json:
    """Return the spec of the Pod.

    Args:
        config: Its kind.
        size: The size of the lab.
        user: Whose it is.
        provision: Whether the user has not been provisioned yet.
    """
    limits = config.size_of(size)
    pull = [{"name": pull_name(user.key)}] if config.pull_secret else []
    inits = [_init(config, limits, user)] if provision and config.init is not None else []
    return {
        "serviceAccountName": bench_name(user.key),
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": _GRACE_S,
        "nodeSelector": {"kubernetes.io/os": "linux", **config.node_selector},
        "securityContext": {
            **RESTRICTED,
            "runAsUser": user.uid,
            "runAsGroup": user.gid,
            "supplementalGroups": supplemental(user.gid, user.groups)[:GROUPS_MAX],
            "fsGroup": user.gid,
            "fsGroupChangePolicy": "OnRootMismatch",
        },
        **({"imagePullSecrets": pull} if pull else {}),
        **({"initContainers": inits} if inits else {}),
        "containers": [_bench(config, limits, user)],
        "volumes": [*_own_volumes(config, limits, user), *_volumes(config, user.key)],
    }


def _bench(config: WorkbenchConfig, limits: BenchSize, user: BenchUser) -> Json:
    token = {"name": "token", "mountPath": _TOKEN_DIR, "readOnly": True}
    files = {"name": "files", "mountPath": FILES, "readOnly": True}
    port = {"name": "http", "containerPort": config.port, "protocol": "TCP"}
    return {
        "name": BENCH,
        "image": config.image,
        **({"command": list(config.command)} if config.command else {}),
        "workingDir": home_of(user.key),
        "ports": [port],
        "env": [*_env(config, user), _access(user.key)],
        "envFrom": [
            {"configMapRef": {"name": env_name(user.key), "optional": True}},
            {"secretRef": {"name": secret_name(user.key), "optional": True}},
        ],
        "resources": _resources(limits),
        "securityContext": RESTRICTED_CONTAINER,
        "readinessProbe": {"tcpSocket": {"port": config.port}, "periodSeconds": 2},
        "volumeMounts": [*_mounts(config, user), token, *([files] if config.secrets else [])],
    }


def _init(config: WorkbenchConfig, limits: BenchSize, user: BenchUser) -> Json:
    """Return the container that provisions the user; a learner can look into it, so that it has no secret."""
    init = config.init
    return {
        "name": INIT,
        "image": init.image if init is not None else "",
        **({"command": list(init.command)} if init is not None and init.command else {}),
        "env": _env(config, user),
        "resources": _resources(limits),
        "securityContext": RESTRICTED_CONTAINER,
        "volumeMounts": _mounts(config, user),
    }


def _env(config: WorkbenchConfig, user: BenchUser) -> list[Json]:
    """Return the variables that count before those of anybody else."""
    name, home = login_name(user.key), home_of(user.key)
    given = {
        "HOME": home,
        "USER": name,
        "LOGNAME": name,
        "SHELL": "/bin/bash",
        "LAB_POD": pod_name(user.key),
        "WORKBENCH_PORT": str(config.port),
    }
    return [
        *({"name": each, "value": text} for each, text in given.items()),
        {"name": "LAB_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
    ]


def _access(key: str) -> Json:
    """Return the variable by which a workbench knows the portal, where policies of the network are not enforced."""
    access = {"name": bench_name(key), "key": ACCESS, "optional": True}
    return {"name": "WORKBENCH_ACCESS", "valueFrom": {"secretKeyRef": access}}


def _resources(limits: BenchSize) -> Json:
    bounds = {"cpu": limits.cpu, "memory": limits.memory, "ephemeral-storage": limits.storage}
    return {"limits": bounds, "requests": {"cpu": "100m", "memory": "128Mi"}}


def _mounts(config: WorkbenchConfig, user: BenchUser) -> list[Json]:
    home = {"name": config.home or "home-empty", "mountPath": home_of(user.key)}
    nss = (
        {"name": "nss", "mountPath": f"/etc/{file}", "subPath": file, "readOnly": True} for file in ("passwd", "group")
    )
    more = ({"name": each.volume, "mountPath": each.path, "readOnly": each.read_only} for each in config.mounts)
    return [home, {"name": "tmp", "mountPath": "/tmp"}, *nss, *more]  # noqa: S108 (a folder of the workbench's own)


def _own_volumes(config: WorkbenchConfig, limits: BenchSize, user: BenchUser) -> list[Json]:
    token = {"serviceAccountToken": {"path": "token", "expirationSeconds": _TOKEN_S}}
    authority = {"configMap": {"name": _ROOT_CA, "items": [{"key": "ca.crt", "path": "ca.crt"}]}}
    place = {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}}
    empty = {"name": "home-empty", "emptyDir": {"sizeLimit": limits.storage}}
    copied = [{"key": each, "path": each} for each in config.secrets]
    files = {"name": "files", "secret": {"secretName": bench_name(user.key), "items": copied, "defaultMode": 0o440}}
    return [
        {"name": "nss", "configMap": {"name": nss_name(user.key)}},
        {"name": "token", "projected": {"sources": [token, authority, place], "defaultMode": 0o440}},
        {"name": "tmp", "emptyDir": {"sizeLimit": limits.storage}},
        *([] if config.home else [empty]),
        *([files] if config.secrets else []),
    ]


def _volumes(config: WorkbenchConfig, key: str) -> list[Json]:
    return [{"name": name, **_volume(each, key)} for name, each in sorted(config.volumes.items())]


def _volume(volume: BenchVolume, key: str) -> Json:
    if volume.csi is None:
        return {"emptyDir": {"sizeLimit": volume.size}}
    attributes = {name: text.replace("{key}", key) for name, text in volume.csi.volume_attributes.items()}
    return {"csi": {"driver": volume.csi.driver, "readOnly": volume.csi.read_only, "volumeAttributes": attributes}}
