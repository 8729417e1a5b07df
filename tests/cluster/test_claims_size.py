"""The API server takes the claims of a worker whose every port is a lablet's, and all that we take it to take."""

import base64
from random import Random
from typing import Any

import msgspec

from tests.support.cluster import Cluster
from tests.unit.domain import builders
from vkprovider.api import names
from vkprovider.api.objects import ConfigMap
from vkprovider.domain.claims import document
from vkprovider.domain.claims.document import Stored
from vkprovider.domain.ports import store as portstore


def stored(cluster: Cluster, namespace: str, name: str, content: dict[str, dict[str, str]]) -> dict[str, Any]:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    metadata = {"name": name, "annotations": {names.ANNOTATION_INSTALLATION: "inst"}}
    cluster.request("POST", path, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **content})
    return cluster.get(f"{path}/{name}") or {}


def test_ten_thousand_lablets_with_a_port_fit(cluster: Cluster, namespace: str) -> None:
    """C25."""
    many = Stored(builders.many_claims(10_001))
    data, binary = document.write(many, worker="w1", installation="inst")
    found = stored(cluster, namespace, "w1-port-allocations", {"data": data, "binaryData": binary})
    assert document.read(msgspec.convert(found, ConfigMap), worker="w1", installation="inst") == many


def test_the_largest_object_that_we_write_fits(cluster: Cluster, namespace: str) -> None:
    noise = base64.b64encode(Random(1).randbytes(portstore.OBJECT_BYTES_MAX)).decode()
    found = stored(cluster, namespace, "largest", {"binaryData": {portstore.GZIP_KEY: noise}})
    assert found["binaryData"] == {portstore.GZIP_KEY: noise}
