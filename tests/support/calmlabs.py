"""Lablets that stand through a storm: links are captured, screens looked at, consoles kept open through a mux."""

import json
import os
import random
import re
import select
import socket
import struct
import subprocess
import threading
import time
from collections import Counter
from itertools import count, pairwise
from typing import Any, Final

import yaml

from tests.support.cluster import Cluster
from tests.support.muxports import talk
from tests.support.rfb import ASK, HELLO, WHOLE_BYTES, hello_bytes, pixel
from tests.support.storm import Hand, sure
from tests.support.topologies import topology
from tests.support.waiting import until
from vkprovider.lablet import names
from vkpsim.cml.consoles.screen import BARS
from vkpsim.cml.packets import EVERY_S

ANSWER_S: Final = 10.0
"""What says nothing for so long stands still."""
AWAY_S: Final = 90.0
"""The longest that a test waits for a screen, or for a request to be taken."""
LOOK_S: Final = 2.0
STOPPED: Final = "r3"
"""The device that is stopped on request."""
_ACT: Final = re.compile(r"/labs/([^/]+)(?:/nodes/([^/]+))?(?:/state)?/(start|stop|wipe|wipe_disks)$")
_CUT: Final = 0.4
"""The share of captures whose reader leaves."""


def calm_topology() -> str:
    """Return a lab: r1 is linked to r2, and to a desktop with a screen; r3 will be stopped."""
    tags = {"r1": ["serial:4001"], "pc": ["vnc:4002"]}
    made = yaml.safe_load(topology({"r1": "iosv", "r2": "iosv", STOPPED: "iosv", "pc": "desktop"}, tags))
    made["nodes"][0]["interfaces"].append({"id": "i9", "label": "eth1", "slot": 1, "type": "physical"})
    made["links"] = [
        {"id": "l0", "n1": "n0", "i1": "i0", "n2": "n1", "i2": "i1"},
        {"id": "l1", "n1": "n0", "i1": "i9", "n2": "n3", "i2": "i3"},
    ]
    return str(yaml.safe_dump(made, sort_keys=False))


class CalmLab:
    """A lablet of that topology, which is Ready.

    Attributes:
        port: The number at which the mux leads to r1.
        files: How the captures ended: `whole`, `cut` by their reader, `broken` off, or refused, with `none`.
        screens: How long after its last picture a screen that was opened again has shown the next one, in seconds.
        answered_s: The longest wait for an answer of the console through the mux.
    """

    def __init__(self, cluster: Cluster, hand: Hand, pod: dict[str, Any]) -> None:
        self._cluster, self._hand = cluster, hand
        self.uid, self.name = pod["metadata"]["uid"], pod["metadata"]["name"]
        self._pod, self.worker = f"default/{self.name}", cluster.simulator_of(pod)
        lab = self.worker.lab_of(self.uid)
        assert lab is not None
        self.lab: str = lab["id"]
        self._labels = {each["id"]: each["label"] for each in self.worker.devices(self.lab)}
        self.files, self.screens, self.answered_s = Counter[str](), list[float](), 0.0
        self.port = until(self.outside_port, ANSWER_S * 6)

    def outside_port(self) -> int:
        """Return the number at which the mux leads to r1, as the Pod says."""
        pod = sure(lambda: self._cluster.pod("default", self.name))
        assert pod is not None
        via = json.loads(pod["metadata"]["annotations"].get(names.ANNOTATION_ACCESS, "{}")).get("r1_serial", {})
        assert via.get("state") == "live", (self.name, via)
        return int(via["port"])

    def is_one_off(self) -> bool:
        """Return whether r3 is off and all others run, as CML says."""
        states = {each["label"]: each["state"] for each in sure(lambda: self.worker.devices(self.lab))}
        wanted = {label: "STOPPED" if label == STOPPED else "BOOTED" for label in self._labels.values()}
        assert states == wanted, (self.name, states)
        return True

    def asked_of_cml(self, since: int) -> Counter[tuple[str, str]]:
        """Count what CML was asked to do to the lab since a request, carried out or not: the device and the act."""
        found = Counter[tuple[str, str]]()
        for entry in self.worker.access_log(since):
            act = _ACT.search(entry["path"])
            if act and act[1] == self.lab and entry["method"] == "PUT":
                found[self._labels.get(act[2], "all"), act[3]] += 1
        return found

    def stop(self, over: threading.Event, after_s: float) -> None:
        """Ask for r3 to be stopped, until that is taken, and see it off."""
        over.wait(after_s)

        def is_taken() -> bool:
            code, _, said = self._hand.read(self._pod, names.DEVICE, "stop", STOPPED, "--yes")
            assert code == 0 or f"{STOPPED} is stopped already" in said, (self.name, code, said)
            return True

        until(is_taken, AWAY_S, every_s=0.5)
        until(self.is_one_off, AWAY_S, every_s=0.5)

    # -------------------------------------------------------------------------------------- captures
    def capture(self, over: threading.Event, seed: int) -> None:
        """Capture one link after the other, each file to its end or until its reader has enough."""
        dice = random.Random(seed)
        while not over.wait(0.5):
            leaves_s = dice.uniform(1.0, 6.0) if dice.random() < _CUT else 0.0
            self._captured(dice.choice(["r1-r2", "r1-pc"]), dice.randint(4, 16), leaves_s)

    def captures_nothing_else(self) -> bool:
        """Return whether a capture is whole, which stops what a killed replica has left: CML captures nothing then."""
        assert self._captured("r1-r2", 3, 0.0) == "whole", self.name
        links, path = self.worker.cml("GET", f"/labs/{self.lab}/links?data=true"), f"/labs/{self.lab}/links"
        keys = [link["id"] for link in links if link["link_capture_key"]]
        left = [link for link in keys if self.worker.cml("GET", f"{path}/{link}/capture/status")]
        assert not left, (self.name, left)
        return True

    def _captured(self, link: str, packets: int, leaves_s: float) -> str:
        """Read a capture to its end, or leave it, and check the file; return how it ended."""
        words = (names.CAPTURE, link, f"--packets={packets}", "--seconds=3600")
        within_s = leaves_s or packets * EVERY_S + 3 * ANSWER_S
        code, file, said = self._hand.read(self._pod, *words, within_s=within_s)
        times, rest = packet_times(file)
        apart = {round((after - before) / 1e6, 5) for before, after in pairwise(times)}
        assert apart <= {EVERY_S}, (self.name, said, times)
        is_whole = code == 0 and "captured: it has reached its limit" in said
        assert not is_whole or (len(times), rest) == (packets, 0), (self.name, said, times)
        how = "whole" if is_whole else "none" if not file else "cut" if leaves_s and code is None else "broken"
        self.files[how] += 1
        return how

    # -------------------------------------------------------------------------------------- screens
    def look(self, over: threading.Event) -> None:
        """Look at the screen, and open it again when it stands still, until it shows a picture after the end."""
        seen_at, is_shown, times = time.monotonic(), False, 0
        while not (over.is_set() and is_shown):
            is_shown = False
            with self._hand.open(self._pod, names.SCREEN, "pc") as viewer:
                try:
                    assert _said(viewer, HELLO, hello_bytes("pc")).startswith(b"RFB 003.008\n")
                    while not (over.is_set() and is_shown):
                        assert pixel(_said(viewer, ASK, WHOLE_BYTES)) == BARS[0]
                        now = time.monotonic()
                        if times and not is_shown:
                            self.screens.append(now - seen_at)
                        seen_at, is_shown, times = now, True, times + 1
                        over.wait(LOOK_S)
                except OSError:
                    is_shown = False
                    time.sleep(0.5)
            assert time.monotonic() - seen_at < AWAY_S, f"the screen of {self.name} stays away"

    # -------------------------------------------------------------------------------------- the mux
    def converse(self, over: threading.Event) -> None:
        """Press Enter at the console through the mux, and dial its number now and then: r1 says its own name."""
        own = f"own-{self.port}"
        line = talk(self.port, "r1")
        try:
            _answered(line, f"enable\rconfigure terminal\rhostname {own}\rend\r\r".encode(), own)
            for turn in count(1):
                began = time.monotonic()
                if turn % 5 == 0:
                    line.close()
                    line = talk(self.port, own)
                _answered(line, b"\r", own)
                self.answered_s = max(self.answered_s, time.monotonic() - began)
                if over.wait(LOOK_S):
                    return
        finally:
            line.close()


def packet_times(file: bytes) -> tuple[list[int], int]:
    """Return the times of the packets of a pcap file, in microseconds, and how many bytes of a cut one follow."""
    at, times = 24, list[int]()
    while at + 16 <= len(file):
        seconds, micros, length, _ = struct.unpack("<IIII", file[at : at + 16])
        if at + 16 + length > len(file):
            break
        times.append(seconds * 1_000_000 + micros)
        at += 16 + length
    return times, max(len(file) - at, 0)


def _answered(line: socket.socket, keys: bytes, own: str) -> None:
    """Type at a console, and wait for the prompt with its own name.

    Raises:
        OSError: It says nothing for too long, or broke.
    """
    line.settimeout(ANSWER_S)
    line.sendall(keys)
    heard = b""
    while f"{own}#".encode() not in heard:
        data = line.recv(4096)
        if not data:
            raise OSError(f"the console of {own} broke: {heard!r}")
        heard += data


def _said(process: "subprocess.Popen[bytes]", data: bytes, wanted: int) -> bytes:
    """Send bytes to a process; return so many that it says.

    Raises:
        OSError: It has ended, or says nothing for too long.
    """
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(data)
    heard = bytearray()
    while len(heard) < wanted:
        ready, _, _ = select.select([process.stdout], [], [], ANSWER_S)
        more = os.read(process.stdout.fileno(), wanted - len(heard)) if ready else b""
        if not more:
            raise OSError("nothing more is said")
        heard += more
    return bytes(heard)
