"""`python -m bench [NAME …]`: run the benchmarks, print their figures as a table, fail if an aim is missed.

`versus` stands for all whose names begin with `versus-`, `growth` likewise. With `ROUNDS=1` in the environment each is
run once, not thrice.
"""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final

import uvloop

from bench import growth, idle, main_job, mux, page, portal, ports, relay, throughput
from bench.figures import Figures, finish, show
from bench.kubelet import run as kubelet
from bench.tunnels import run as tunnels
from bench.versus import idle as versus_idle
from bench.versus import pods as versus

ROUNDS: Final = int(os.environ.get("ROUNDS") or 3)

Benchmark = Callable[[int], Sequence[Figures]]
"""Run a benchmark so many rounds and return the figures of each."""


def _on_uvloop(run: Callable[[int], Awaitable[Sequence[Figures]]]) -> Benchmark:
    """Return a benchmark of rounds that share what they measure, on uvloop, so that measuring costs little CPU."""

    async def whole(rounds: int) -> Sequence[Figures]:
        return await run(rounds)

    def benchmark(rounds: int) -> Sequence[Figures]:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(whole(rounds))

    return benchmark


def _each_alone(run: Callable[[], Awaitable[Figures]]) -> Benchmark:
    """Return a benchmark that begins anew for each round."""

    async def once(_: int) -> Sequence[Figures]:
        return [await run()]

    def benchmark(rounds: int) -> Sequence[Figures]:
        found: list[Figures] = []
        for number in range(rounds):
            found += _on_uvloop(once)(1)
            show(f"round {number + 1}", found[-1])
        return found

    return benchmark


ALWAYS: Final = {
    "idle": _each_alone(idle.run),
    "kubelet": _each_alone(kubelet.run),
    "main-job": _each_alone(main_job.run),
    "ports": _each_alone(ports.run),
    "throughput": _on_uvloop(throughput.run),
    "tunnels": _each_alone(tunnels.run),
}
"""What `make bench` runs."""

NAMED: Final = {
    **{f"versus-{pods}": _on_uvloop(partial(versus.run, pods)) for pods in versus.SIZES},
    "versus-idle": _on_uvloop(versus_idle.run),
    "mux": _on_uvloop(mux.run),
    "page": _on_uvloop(page.run),
    "portal": _on_uvloop(portal.run),
    "relay": _each_alone(relay.run),
    "growth-nodes": _each_alone(growth.nodes),
    "growth-pods": _each_alone(growth.pods),
    "growth-replicas": _each_alone(growth.replicas),
    "growth-crowd": _each_alone(growth.crowd),
}
"""What takes long, builds a rival first or needs one installed: only by name."""


def main() -> int:
    """Run the named benchmarks, or those that always run."""
    known = ALWAYS | NAMED
    wanted = []
    for word in sys.argv[1:] or list(ALWAYS):
        found = [name for name in known if name == word or name.startswith(f"{word}-")]
        if not found:
            print(f"unknown: {word}; there are {', '.join(known)}")
            return 2
        wanted += found
    held = [finish(name, known[name](ROUNDS)) for name in wanted]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
