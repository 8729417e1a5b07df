"""The kubelet API beside what it is made of."""

import itertools
import ssl
import statistics
from typing import Final

from bench.figures import Figures
from bench.kubelet.following import followers
from bench.kubelet.forwarding import program, time_forward, time_plain
from bench.kubelet.listening import nodes

ROUNDS: Final = 9
BYTES: Final = 256 * 1024 * 1024


async def run() -> Figures:
    """Measure."""
    return {**await nodes(), **await followers(), **await port_forward()}


async def port_forward() -> Figures:
    """Measure bytes through a port-forward session against a plain relay of TCP, which take turns.

    Target and relays are processes of their own, this one is the client. Ratios are made within a round. The API server
    speaks TLS with a kubelet; what that costs is shown by both relays with it, and by the relay without.
    """
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.check_hostname = False
    tls.verify_mode = ssl.CERT_NONE
    ratios: dict[str, list[float]] = {}
    async with program("target") as (target,), program("relays", str(target)) as (plain, plain_tls, ours, ours_tls):
        for number, order in itertools.product(range(1, ROUNDS + 1), ("get", "put")):
            plain_s = await time_plain(plain, order, BYTES, None)
            plain_tls_s = await time_plain(plain_tls, order, BYTES, tls)
            for way in ("SPDY", "WebSocket"):
                took_s = await time_forward(ours, order, BYTES, None, websocket=way == "WebSocket")
                took_tls_s = await time_forward(ours_tls, order, BYTES, tls, websocket=way == "WebSocket")
                found = {
                    f"{order} by {way} / plain relay": plain_s / took_s,
                    f"{order} by {way}, both with TLS": plain_tls_s / took_tls_s,
                    f"{order} by {way} with TLS / relay without": plain_s / took_tls_s,
                }
                for name, ratio in found.items():
                    ratios.setdefault(f"port-forward: {name}", []).append(ratio)
                times_s = {"plain": plain_s, "with TLS": plain_tls_s, way: took_s, f"{way} with TLS": took_tls_s}
                rates = ", ".join(f"{name} {BYTES / took / 1e6:.0f}" for name, took in times_s.items())
                print(f"kubelet, round {number}: {order}, MB/s: {rates}", flush=True)
    return {name: (statistics.median(found), "ratio") for name, found in ratios.items()}
