"""Five hundred idle nodes of KWOK and of ours, in turns on one control plane: what it costs that nothing happens."""

import asyncio
from functools import partial
from typing import Final

from bench.controlplane import ETCD
from bench.figures import Figures
from bench.idle import CAPACITY, NODES, SETTLE_S
from bench.outside import PROVIDER, audited, cpu_of, cpu_since, resident_now_mb
from bench.updown import OURS
from bench.versus import kwok
from bench.versus.pods import begin, in_turns, sandbox_of_both
from vkpsandbox import Sandbox

_MEASURE_S: Final = 60.0
_OTHERS_S: Final = 60.0
"""How long the API server is busy with the nodes of the other, which stopped: they turn Unknown after 40 to 50 s."""


async def run(rounds: int) -> list[Figures]:
    """Measure."""
    print("control plane, other than stock:", ETCD, "  an audit log, for the writes", sep="\n")
    sandbox = await sandbox_of_both("bench-versus-idle", NODES, audit=True, worker_spec={"capacity": CAPACITY})
    try:
        return [await in_turns(number, partial(_turn, sandbox)) for number in range(rounds)]
    finally:
        await asyncio.to_thread(sandbox.down)


async def _turn(sandbox: Sandbox, process: str) -> Figures:
    assert sandbox.audit_log is not None
    try:
        await begin(sandbox, process)
        await asyncio.sleep(SETTLE_S + _OTHERS_S)
        before, audit_from = cpu_of(sandbox), sandbox.audit_log.stat().st_size
        await asyncio.sleep(_MEASURE_S)
        used = cpu_since(before, sandbox)
        writes = audited(sandbox.audit_log, audit_from, PROVIDER if process == OURS else kwok.USER)
        return {
            "CPU": (used[process], "s"),
            "CPU of API server and etcd": (used["kube-apiserver"] + used["etcd"], "s"),
            "writes": (float(sum(writes.values()) - writes["failed"]), "writes"),
            "resident": (resident_now_mb(sandbox.process(process).pid or 0), "MB"),
        }
    finally:
        await asyncio.to_thread(sandbox.stop, process, grace_s=20)
