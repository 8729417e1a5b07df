"""The portal of the sandbox: its rights, its learners' namespace, and the command lines of its replicas."""

import json
import secrets
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from vkprovider.portal.pure import portalnames
from vkpsandbox.controlplane.content import NAMESPACE, apply_components, write_account_kubeconfig
from vkpsandbox.controlplane.kubectl import Kubectl
from vkpsandbox.controlplane.programs import PROVIDER_GRACE_S, VKPROVIDER
from vkpsandbox.paths import Layout
from vkpsandbox.processes.ports import free_ports
from vkpsandbox.processes.process import ProcessSpec, Restart

LEARNERS: Final = "learners"
"""The namespace whose ServiceAccounts are the users of the portal: `alice` there is its user `alice`."""
HUB: Final = "hub"
"""The ServiceAccount, in the portal's namespace, of a hub that sees and deletes all labs."""
_USER_ROLE: Final = "vkprovider-portal-user"
_HUB_ROLE: Final = "vkprovider-portal-hub"
_KEY_BYTES: Final = 32
MANIFESTS: Final = ("portal/roles.yaml", "portal/rbac.yaml", "portal/confine.yaml", "portal/mark.yaml")
"""What is applied of the portal's component."""


def process_name(number: int) -> str:
    """Return the name of a replica's process, counted from 1."""
    return f"portal-{number}"


def portal_processes(
    layout: Layout, kubectl: Kubectl, manifests: Path, replicas: int, settings: Mapping[str, str]
) -> list[ProcessSpec]:
    """Apply the portal's rights, and those of its users and of a hub; return the command lines of its replicas.

    Args:
        layout: The sandbox's files.
        kubectl: As admin.
        manifests: The folder of the manifests.
        replicas: How many replicas.
        settings: Further settings of each.

    Raises:
        SandboxError: The cluster refuses.
    """
    apply_components(kubectl, manifests, MANIFESTS)
    objects = {"apiVersion": "v1", "kind": "List", "items": _callers()}
    kubectl("apply", "-f", "-", stdin=json.dumps(objects))
    account, key = portalnames.PORTAL_PROGRAM, b64encode(secrets.token_bytes(_KEY_BYTES)).decode()
    write_account_kubeconfig(kubectl, layout, layout.portal_kubeconfig, account, account)
    return [
        ProcessSpec(
            name=process_name(number),
            argv=[*VKPROVIDER, "portal"],
            env={
                "KUBECONFIG": str(layout.portal_kubeconfig),
                "VKPROVIDER_NAMESPACE": NAMESPACE,
                "VKPROVIDER_HTTP_HOST": "127.0.0.1",
                "VKPROVIDER_HTTP_PORT": str(port),
                "VKPROVIDER_PORTAL_COOKIE_KEY": key,
                "VKPROVIDER_PORTAL_USERNAME_PREFIX": f"system:serviceaccount:{LEARNERS}:",
                "LABLET_CONTROLLER_INSTANCE_ID": None,
                **settings,
            },
            url=f"http://127.0.0.1:{port}",
            restart=Restart.UNLESS_KILLED,
            grace_s=PROVIDER_GRACE_S,
        )
        for number, port in enumerate(free_ports(replicas), 1)
    ]


def _callers() -> list[dict[str, Any]]:
    """Return the namespace of the learners, the account of a hub, and the bindings of both to what the portal asks."""
    learners = {"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": f"system:serviceaccounts:{LEARNERS}"}
    hub = {"kind": "ServiceAccount", "name": HUB, "namespace": NAMESPACE}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": LEARNERS}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": HUB, "namespace": NAMESPACE}},
        _binding(_USER_ROLE, learners),
        _binding(_HUB_ROLE, hub),
    ]


def _binding(role: str, subject: Mapping[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": role, "namespace": NAMESPACE},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [dict(subject)],
    }
