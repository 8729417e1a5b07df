"""`python -m bench [NAME]`: run the benchmarks, print their figures as a table, fail if an aim is missed."""

import asyncio
import sys

import uvloop

from bench import idle, kubelet, main_job, ports, throughput, tunnels
from bench.figures import Figures, finish, median_of

RUNS = {"idle": 3, "main-job": 3}
"""How often a benchmark is run whole; its figures are the medians. The others repeat their steps themselves."""
BENCHMARKS = {
    "idle": idle.run,
    "kubelet": kubelet.run,
    "main-job": main_job.run,
    "ports": ports.run,
    "throughput": throughput.run,
    "tunnels": tunnels.run,
}


def main() -> int:
    """Run the named benchmarks, or all."""
    wanted = sys.argv[1:] or list(BENCHMARKS)
    unknown = [name for name in wanted if name not in BENCHMARKS]
    if unknown:
        print(f"unknown: {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
        return 2
    held = [finish(name, _run(name)) for name in wanted]
    return 0 if all(held) else 1


def _run(name: str) -> Figures:
    """Run one benchmark, on uvloop, so that measuring costs the measured code little CPU."""
    runs: list[Figures] = []
    for number in range(RUNS.get(name, 1)):
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runs.append(runner.run(BENCHMARKS[name]()))
        if name in RUNS:
            shown = ", ".join(f"{figure} {value:.2f} {unit}" for figure, (value, unit) in runs[-1].items())
            print(f"{name}, run {number + 1}: {shown}", flush=True)
    return median_of(runs)


if __name__ == "__main__":
    sys.exit(main())
