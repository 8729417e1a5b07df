"""R003: consoles behind the address of a mux outlive the processes of mux, relay and provider when they are killed."""

import socket
from functools import partial
from typing import Any

from tests.support.cluster import Cluster
from tests.support.muxports import outside_ports, talk
from tests.support.relay import haproxy_or_skip
from tests.support.topologies import definition, pod, topology
from tests.support.waiting import until
from vkpsandbox.controlplane.content import NAMESPACE


def refused(port: int) -> bool:
    """Return whether nobody answers at a port."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as sock:
            return sock.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


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
