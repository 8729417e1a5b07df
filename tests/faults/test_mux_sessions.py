"""500 consoles are open through a mux while all that serves it is killed and restarted, and the API server is away."""

import contextlib
import json
import select
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import pytest

from tests.support.cluster import Cluster
from tests.support.relay import haproxy_or_skip
from tests.support.sandboxes import started
from tests.support.topologies import definition, pod, topology
from tests.support.waiting import until
from vkpsandbox import Sandbox
from vkpsandbox.controlplane.content import NAMESPACE

LABLETS: Final = 10
DEVICES: Final = 10
EACH: Final = 5
"""Sessions with each device."""
PROGRAMS: Final = ("provider-1", "mux", "relay")
AWAY_S: Final = 20.0
"""Longer than a replica may act without its Lease."""
BACK_S: Final = 60.0


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """Two workers, and a mux with its relay."""
    haproxy_or_skip()
    with started(
        "mux-sessions",
        tmp_path_factory.mktemp("mux"),
        workers=2,
        mux=True,
        worker_args=[["--boot-seconds=0.2", "--patty-poll-seconds=0.2"]],
        worker_spec={"portRange": {"start": 5000, "end": 5999}},
    ) as made:
        yield made


class Session:
    """A console, opened through the mux."""

    def __init__(self, device: str, port: int) -> None:
        self.device = device
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=5)

    def complaint(self) -> str:
        """Press Return; return "" if the device answers with its own name, else what comes."""
        said, until_s = b"", time.monotonic() + 20
        try:
            self._read(0)  # what others at this console have made it say
            self._socket.sendall(b"\r\n")
            while time.monotonic() < until_s:
                if (part := self._read(1)) is None:
                    return f"{self.device} has closed after {said!r}"
                said += part
                if said.rstrip().endswith((b">", b"#")):
                    answered = said.split()[-1][:-1].decode()
                    return "" if answered == self.device else f"{answered} answers for {self.device}"
        except OSError as error:
            return f"{self.device}: {error}"
        return f"{self.device} says only {said!r}"

    def _read(self, within_s: float) -> bytes | None:
        """Return what has come; None if the other side has closed."""
        if not select.select([self._socket], [], [], within_s)[0]:
            return b""
        return self._socket.recv(65536) or None

    def has_ended(self) -> bool:
        with contextlib.suppress(OSError):
            while (part := self._read(0)) is not None:
                if not part:
                    return False
        return True

    def close(self) -> None:
        self._socket.close()


def lablet(cluster: Cluster, namespace: str, number: int) -> None:
    """Deploy a lablet whose devices have names that no other one has."""
    devices = [f"l{number}d{device}" for device in range(DEVICES)]
    tags = {name: [f"serial:{4001 + each}"] for each, name in enumerate(devices)}
    expose: dict[str, Any] = {"mux": f"labs.{NAMESPACE}"}
    cluster.define(definition(f"many-{number}", topology(dict.fromkeys(devices, "iosv"), tags), expose=expose))
    cluster.apply(pod(f"many-{number}", f"many-{number}"), namespace=namespace)


def live(cluster: Cluster, namespace: str, lablets: Iterable[int]) -> Callable[[], dict[str, int]]:
    """Return a function that returns the outside port of each device of some lablets, once all are live."""
    names = {f"many-{number}" for number in lablets}

    def look() -> dict[str, int]:
        pods = [each for each in cluster.pods(namespace) if each["metadata"]["name"] in names]
        said = [json.loads(each["metadata"]["annotations"].get("vkprovider.io/access", "{}")) for each in pods]
        found = {
            slot.partition("_")[0]: port["port"]
            for access in said
            for slot, port in access.items()
            if port["state"] == "live"
        }
        return found if len(found) == len(names) * DEVICES else {}

    return look


def broken(sessions: Iterable[Session]) -> list[str]:
    return [complaint for session in sessions if (complaint := session.complaint())]


def test_mux_sessions_outlive_all_that_serves_them(cluster: Cluster, namespace: str) -> None:
    for number in range(LABLETS):
        lablet(cluster, namespace, number)
    ports = until(live(cluster, namespace, range(LABLETS)), 180, "not all are live")
    sessions = [Session(device, port) for device, port in ports.items() for _ in range(EACH)]
    try:
        assert len(sessions) == LABLETS * DEVICES * EACH == 500
        assert broken(sessions) == []
        for program in PROGRAMS:
            cluster.sandbox.kill(program)
        assert broken(sessions) == [], "while all are dead"
        for program in PROGRAMS:
            cluster.sandbox.start(program)
        assert broken(sessions) == [], "while they begin"

        cluster.sandbox.kill("kube-apiserver")
        began = time.monotonic()
        assert broken(sessions) == [], "while the API server is away"
        for program in PROGRAMS:
            cluster.sandbox.kill(program)
            cluster.sandbox.start(program)
        while time.monotonic() - began < AWAY_S:
            assert broken(sessions) == [], "while they begin without it"
        cluster.sandbox.start("kube-apiserver")
        lablet(cluster, namespace, LABLETS)
        until(live(cluster, namespace, [LABLETS]), BACK_S, "nobody serves the mux again")
        assert broken(sessions) == [], "when all is back"
        assert live(cluster, namespace, range(LABLETS))() == ports, "no number moved"

        gone = [session for session in sessions if session.device.startswith("l0d")]
        kept = [session for session in sessions if session not in gone]
        cluster.kubectl("delete", "pod", "many-0", f"--namespace={namespace}", "--wait=false")
        until(lambda: all(session.has_ended() for session in gone), 60, "sessions of an ended lablet stay")
        assert broken(kept) == [], "those of the others go on"
    finally:
        for session in sessions:
            session.close()
