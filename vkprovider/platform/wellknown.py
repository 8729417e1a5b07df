"""Names on the wire that every program of ours uses: the API group, Kubernetes' own labels, and those of a replica."""

import re
from typing import Final

GROUP: Final = "vkprovider.io"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
MANAGER: Final = "vkprovider"
"""Field manager and `app.kubernetes.io/managed-by`."""
SERVICE_ACCOUNT: Final = "vkprovider"
"""The provider's ServiceAccount; the ClusterRoleBinding that gives it its rights has the same name."""
LABEL_INSTALLED_IN: Final = f"{GROUP}/installed-in"
"""The namespace of the installation that an object, or the owner of a Node's Lease, belongs to."""
LABEL_MANAGED_BY: Final = "app.kubernetes.io/managed-by"

# Annotations: first those of other objects, then a Pod's. A Pod's also belongs into INPUTS or REPORTS below.
ANNOTATION_INSTALLATION: Final = f"{GROUP}/installation"
ANNOTATION_PROCESS: Final = f"{GROUP}/process"
ANNOTATION_VERSION: Final = f"{GROUP}/version"
"""An annotation of a replica's Lease: the version of the provider that renews it."""
ANNOTATION_CLOCK_SKEW: Final = f"{GROUP}/clock-skew"
"""An annotation of a replica's Lease: by how many seconds its machine's clock is ahead of the API server's."""
LABEL_SERVICE_NAME: Final = "kubernetes.io/service-name"
"""A label of an EndpointSlice: the Service whose backends it has."""
LABEL_SERVICE_PROXY: Final = "service.kubernetes.io/service-proxy-name"
LABEL_SLICE_MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"

DEFAULT_NAMESPACE: Final = "default"
"""The namespace of a context that names none."""
NODE_LEASE_NAMESPACE: Final = "kube-node-lease"
_NOT_LABEL = re.compile(r"[^A-Za-z0-9_.-]")


def logins_namespace(namespace: str) -> str:
    """Return the namespace of the logins of workers and devices, unless a setting names it; nothing else is in it.

    >>> logins_namespace("vkprovider-system")
    'vkprovider-system-logins'
    """
    return f"{namespace}-logins"


def label_value(text: str) -> str:
    """Derive a legal label value: at most 63 characters, alphanumeric at both ends."""
    return _NOT_LABEL.sub("-", text)[:63].strip("-_.")


ACCOUNT_USERNAME: Final = "system:serviceaccount:"
"""What the username of a ServiceAccount begins with, before NAMESPACE:NAME."""
