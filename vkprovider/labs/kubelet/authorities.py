"""The authorities that sign client certificates of the cluster, among them that of the API server for kubelets.

The API server publishes them in a ConfigMap (its `--client-ca-file`); a kubelet has the same as a file.
"""

import ssl
from typing import Final

import structlog

from vkprovider.labs.kubelet.tls import ServingTls
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.informer import Informer
from vkprovider.platform.objects import ConfigMap

_log: Final = structlog.get_logger(__name__)
_NAME: Final = "extension-apiserver-authentication"
_KEY: Final = "client-ca-file"


def client_authorities(kube: KubeClient, tls: ServingTls) -> Informer[ConfigMap]:
    """Return the informer that keeps the authorities of the kubelet API up to date while it runs."""

    def changed(_: ConfigMap | None, new: ConfigMap | None) -> None:
        found = new.data.get(_KEY, "") if new is not None else ""
        if not found:
            _log.warning("client certificates cannot be verified: the API server publishes no authority", name=_NAME)
        try:
            tls.trust(found)
        except ssl.SSLError as error:
            _log.warning("the authorities of client certificates cannot be read", name=_NAME, error=str(error))

    informer = Informer(
        kube,
        "/api/v1/namespaces/kube-system/configmaps",
        ConfigMap,
        name="client-authorities",
        field_selector=f"metadata.name={_NAME}",
    )
    informer.add_handler(changed)
    return informer
