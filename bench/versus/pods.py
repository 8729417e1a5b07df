"""The same Deployment on KWOK's nodes and on ours, in turns on one control plane.

Only one of the two runs at a time, begun anew for each round, so that neither pays for what the other's pods cause.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from bench import stages
from bench.controlplane import ETCD
from bench.figures import BUILD, Figures, percentile, show
from bench.throughput import CAPACITY, TOPOLOGY
from bench.updown import OURS, UpAndDown, deployment, prepare, up_and_down
from bench.versus import kwok, least
from bench.versus.chart import Curve, write_chart
from bench.versus.served import served, since, table
from vkprovider.lablet.names import NODE_PREFIX
from vkpsandbox import Sandbox

SIZES: Final = (1000, 5000)
PODS_PER_NODE: Final = 100
COMPONENT_ARGS: Final = {
    "kube-controller-manager": ("--kube-api-qps=5000", "--kube-api-burst=10000"),
    "kube-scheduler": ("--kube-api-qps=5000", "--kube-api-burst=10000"),
}
"""At the stock 20 requests a second nobody would see a difference between providers."""

_SIDES: Final = {kwok.NAME: "KWOK", OURS: "ours"}
_NAMES: Final = {**_SIDES, least.NAME: "the least"}
_NAME: Final = "bench-versus"
_NODES_S: Final = 300.0
_CPU_S_MIN: Final = 0.05


async def run(pods: int, rounds: int) -> list[Figures]:
    """Measure so many pods."""
    nodes = pods // PODS_PER_NODE
    print("control plane, other than stock:", ETCD, sep="\n")
    print(*(f"  {component}: {' '.join(args)}" for component, args in COMPONENT_ARGS.items()), sep="\n")
    sandbox = await sandbox_of_both(
        _NAME,
        nodes,
        component_args=COMPONENT_ARGS,
        worker_spec={"capacity": CAPACITY},
        provider_env={"VKPROVIDER_TIMELINE_FILE": str(stages.timeline_of(_NAME))},
    )
    try:
        found = []
        await _least(sandbox, pods)
        for number in range(rounds):
            seen: dict[str, UpAndDown] = {}
            found.append(await in_turns(number, partial(_turn, sandbox, pods, seen)))
            _draw(pods, seen)
        return found
    finally:
        await asyncio.to_thread(sandbox.down)


async def sandbox_of_both(name: str, nodes: int, **how: Any) -> Sandbox:
    """Start a sandbox with so many nodes of each; neither KWOK nor the provider runs.

    Args:
        name: The sandbox's.
        nodes: How many of each.
        **how: For `Sandbox.up`.
    """
    await asyncio.to_thread(kwok.ensure)
    print("  FlowSchemas of KWOK: the provider's (its own would exempt it from priority and fairness)", flush=True)
    sandbox = await asyncio.to_thread(
        Sandbox.up, name, workers=nodes, backend="null", tied=True, on_progress=print, **how
    )
    try:
        await asyncio.to_thread(prepare, sandbox, TOPOLOGY)
        await asyncio.to_thread(sandbox.stop, OURS, grace_s=20)
        await asyncio.to_thread(kwok.add, sandbox, nodes)
        await _until_ready(sandbox, kwok.NAME)
        await asyncio.to_thread(sandbox.stop, kwok.NAME)
    except BaseException:
        await asyncio.to_thread(sandbox.down)
        raise
    return sandbox


async def in_turns(number: int, turn: Callable[[str], Awaitable[Figures]]) -> Figures:
    """Measure both and compare them; they take turns in being first, by the number of the round."""
    measured: dict[str, Figures] = {}
    for process in sorted(_SIDES, reverse=bool(number % 2)):
        measured[_SIDES[process]] = one = await turn(process)
        show(f"round {number + 1}, {_SIDES[process]}", one)
    figures: Figures = {}
    for name, (ours, unit) in measured["ours"].items():
        theirs, _ = measured["KWOK"][name]
        figures |= {f"{name}, KWOK": (theirs, unit), f"{name}, ours": (ours, unit)}
        figures[f"{name}, ratio"] = (ours / theirs, "ratio")
    return figures


async def _least(sandbox: Sandbox, pods: int) -> None:
    """Print the figures of the least that a provider can do."""
    await asyncio.to_thread(least.add, sandbox)
    await asyncio.to_thread(sandbox.stop, least.NAME)
    await begin(sandbox, OURS)  # makes the nodes Ready again, which it does not do itself
    await asyncio.to_thread(sandbox.stop, OURS, grace_s=20)
    show(_NAMES[least.NAME], await _turn(sandbox, pods, {}, least.NAME))


def _cpu(used: Mapping[str, float]) -> str:
    """Return the CPU of each process that used some, as text."""
    ordered = sorted(used.items(), key=lambda one: -one[1])
    return "CPU " + ", ".join(f"{name} {seconds:.2f} s" for name, seconds in ordered if seconds >= _CPU_S_MIN)


async def begin(sandbox: Sandbox, process: str) -> None:
    """Start KWOK, the provider or the least, and wait until it serves its nodes."""
    began = datetime.now(UTC)
    await asyncio.to_thread(sandbox.start, process)
    await _until_ready(sandbox, process, began)


async def _until_ready(sandbox: Sandbox, process: str, began: datetime | None = None) -> None:
    """Wait until its nodes are Ready and nothing but their own taints keeps pods away.

    Args:
        sandbox: Where.
        process: What serves them.
        began: When it was started again. Its nodes are Ready from before, and KWOK serves none before the Lease that
            its predecessor held has expired, after 40 s.
    """
    prefix = f"{kwok.NAME}-" if process == kwok.NAME else NODE_PREFIX
    deadline = time.monotonic() + _NODES_S
    while True:
        ready = {node["metadata"]["name"] for node in await _list(sandbox, "nodes") if _is_ready(node)}
        if began is not None:
            leases = await _list(sandbox, "leases", "--namespace=kube-node-lease")
            ready &= {lease["metadata"]["name"] for lease in leases if _renewed(lease) > began}
        served = sum(name.startswith(prefix) for name in ready)
        if served == len(sandbox.workers):
            return
        if time.monotonic() > deadline:
            raise TimeoutError(f"{process} serves {served} of {len(sandbox.workers)} nodes after {_NODES_S:.0f} s")
        await asyncio.sleep(0.5)


async def _list(sandbox: Sandbox, kind: str, *where: str) -> list[dict[str, Any]]:
    listed = await asyncio.to_thread(sandbox.kubectl, "get", kind, *where, "-o", "json")
    items: list[dict[str, Any]] = json.loads(listed.stdout)["items"]
    return items


def _renewed(lease: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(lease["spec"]["renewTime"])


def _is_ready(node: dict[str, Any]) -> bool:
    ready = any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"].get("conditions", ()))
    return ready and not any(t["key"].startswith("node.kubernetes.io/") for t in node["spec"].get("taints", ()))


async def _turn(sandbox: Sandbox, pods: int, seen: dict[str, UpAndDown], process: str) -> Figures:
    """Start one of them, measure it, and stop it; print where its time went."""
    try:
        await begin(sandbox, process)
        before = await asyncio.to_thread(served, sandbox)
        manifest = deployment(pods, placed=kwok.ON_ITS_NODES if process == kwok.NAME else None)
        seen[process] = one = await up_and_down(sandbox, pods, process=process, manifest=manifest)
        during = since(before, await asyncio.to_thread(served, sandbox))
        print(f"{_NAMES[process]}, until all are Ready: {_cpu(one.cpu_until_ready_s)}")
        print(f"{_NAMES[process]}, up and down: {one.others_cpu_s:.2f} s of CPU for what else ran on the machine")
        print(table(_NAMES[process], during), flush=True)
    finally:
        await asyncio.to_thread(sandbox.kubectl, "delete", "deployment/bench", "--ignore-not-found", "--wait")
        await asyncio.to_thread(sandbox.stop, process, grace_s=20)
    if process == OURS:
        print("the provider's own stages:", stages.table(stages.timeline_of(_NAME), one.lives), sep="\n", flush=True)
    return _figures(one)


def _figures(seen: UpAndDown) -> Figures:
    waits = [life.ready - life.bound for life in seen.lives.values()]
    return {
        "create to all Ready": (seen.ready_s, "s"),
        "scale to 0 to all gone": (seen.gone_s, "s"),
        "bound to Ready p50": (percentile(waits, 0.5), "s"),
        "bound to Ready p99": (percentile(waits, 0.99), "s"),
        "CPU, up and down": (seen.cpu_s, "s"),
        "resident": (seen.resident_mb, "MB"),
        "create to all bound": (seen.bound_s, "s"),
        "CPU of API server and etcd": (seen.server_cpu_s, "s"),
        "CPU of scheduler and controller-manager": (seen.controllers_cpu_s, "s"),
    }


def _draw(pods: int, seen: dict[str, UpAndDown]) -> None:
    """Write the last round's chart: the time from creation until so many pods are Ready, and of scaling to 0."""
    curves = []
    for process, side in _SIDES.items():
        one = seen[process]
        ready = sorted(life.ready - one.created for life in one.lives.values())
        gone = sorted(life.gone - one.scaled for life in one.lives.values())
        curves += [Curve(f"{side}: Ready", ready), Curve(f"{side}: gone", gone, dashed=True)]
    write_chart(BUILD / f"versus-{pods}.svg", f"{pods:,} pods on {pods // PODS_PER_NODE} nodes", curves)
