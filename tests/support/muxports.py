"""Consoles behind the mux of a sandbox: which outside port each lablet has, and whether its device answers there."""

import contextlib
import json
import socket

from tests.support.cluster import Cluster
from vkpsandbox.controlplane.content import NAMESPACE

MUX = f"/api/v1/namespaces/{NAMESPACE}/services/labs"
SLICES = f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices"


def talk(port: int, wanted: str) -> socket.socket:
    """Open a console through the mux, at whose prompt the device's name must stand."""
    sock = None
    text = b""
    with contextlib.suppress(OSError):
        sock = socket.create_connection(("127.0.0.1", port), timeout=2)
        sock.sendall(b"\r\n")
        while data := sock.recv(4096):
            text += data
            if f"{wanted}>".encode() in text or f"{wanted}#".encode() in text:
                return sock
    if sock is not None:
        sock.close()
    raise AssertionError(f"{wanted} does not answer at {port}, but {text!r}")


def outside_ports(cluster: Cluster) -> dict[str, int]:
    """Return the outside port of each lablet that has one, by the slices that the provider writes."""
    found = {}
    mux = cluster.get(MUX)
    assert mux is not None
    numbers = {port["name"]: port["port"] for port in mux["spec"]["ports"]}
    for item in cluster.items(SLICES):
        channels = json.loads(item["metadata"]["annotations"].get("svc-mux.nowake.ai/channels", "[]"))
        for channel in channels:
            for port in item["ports"]:
                if port["name"] in numbers:
                    found[channel.rpartition("/")[2]] = numbers[port["name"]]
    return found
