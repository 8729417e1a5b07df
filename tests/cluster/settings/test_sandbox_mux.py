"""R003: consoles behind the address of a mux outlive the processes of mux, relay and provider when they are killed."""

import contextlib
import json
import socket
from functools import partial
from typing import Any

from tests.support.cluster import Cluster
from tests.support.relay import haproxy_or_skip
from tests.support.topologies import definition, pod, topology
from tests.support.waiting import until
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


def refused(port: int) -> bool:
    """Return whether nobody answers at a port."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as sock:
            return sock.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


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


def ended(sock: socket.socket) -> bool:
    """Return whether the other side has closed a connection."""
    sock.settimeout(0.2)
    try:
        return sock.recv(4096) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


def test_consoles_behind_one_address_answer_with_their_own_names(cluster: Cluster, namespace: str) -> None:
    haproxy_or_skip()
    expose: dict[str, Any] = {"mux": f"labs.{NAMESPACE}"}
    for name in ("alpha", "beta"):
        inline = topology({name: "iosv"}, {name: ["serial:4001"]})
        cluster.define(definition(f"mux-{name}", inline, expose=expose))
        cluster.apply(pod(name, f"mux-{name}"), namespace=namespace)
    cluster.wait_ready(namespace, 2)
    until(lambda: set(outside_ports(cluster)) == {"alpha", "beta"}, 60, "no outside ports")
    ports = outside_ports(cluster)
    consoles = {name: until(partial(talk, port, name), 60) for name, port in ports.items()}
    for process in ("provider-1", "mux", "relay"):
        cluster.sandbox.kill(process)
    talk(ports["beta"], "beta").close()  # HAProxy goes on by itself
    assert not any(map(ended, consoles.values()))
    for process in ("provider-1", "mux", "relay"):
        cluster.sandbox.start(process)
    cluster.kubectl("delete", "pod", "alpha", f"--namespace={namespace}", "--wait=false")
    until(lambda: ended(consoles["alpha"]), 60, "the console of an ended lablet stays")
    until(lambda: refused(ports["alpha"]), 60, "the number of an ended lablet answers")
    assert not ended(consoles["beta"])
    for sock in consoles.values():
        sock.close()
