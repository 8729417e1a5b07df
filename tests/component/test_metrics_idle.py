"""A replica that has not begun tells its metrics all the same; what it counts appears under the names of the table."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from tests.support.idle import idle_provider
from vkprovider.labs.wiring.base import Queues
from vkprovider.labs.wiring.provider import Provider
from vkprovider.platform.kube.queue import KeyedQueue
from vkprovider.platform.runtime import parts
from vkprovider.platform.runtime.metrics import exposition, registry_of


@pytest.fixture
async def replica(tmp_path: Path) -> AsyncIterator[Provider]:
    async with idle_provider(tmp_path) as replica:
        yield replica


async def exported(replica: Provider) -> dict[str, Metric]:
    text = (await exposition(registry_of(replica.process.measures))).decode()
    families = text_string_to_metric_families(text)
    return {f"{f.name}_total" if f.type == "counter" else f.name: f for f in families}


async def test_every_metric_of_the_table_is_exported(replica: Provider) -> None:
    families = await exported(replica)
    declared = {measure.name: measure.kind for measure in replica.process.measures}
    assert {name: family.type for name, family in families.items()} == declared


async def test_counts_appear_with_the_labels_of_the_table(replica: Provider) -> None:
    counters = replica.base.counters
    counters.steps["IMPORT"] = 2
    counters.transitions["READY", "RUNNING"] = 3
    counters.lab_started("gone", 5.0)
    replica.base.queues.lablets.ran_s["ok"].observe(0.3)
    families = await exported(replica)
    for measure in replica.process.measures:
        for sample in families[measure.name].samples:
            assert set(sample.labels) - {"le"} == set(measure.labels), sample
    [steps] = families["vkprovider_steps_total"].samples
    assert (steps.name, steps.labels, steps.value) == ("vkprovider_steps_total", {"step": "IMPORT"}, 2)
    [moved] = families["instance_state_transitions_total"].samples
    assert (moved.labels, moved.value) == ({"from_state": "READY", "to_state": "RUNNING"}, 3)
    assert families["lab_start_duration_seconds"].samples == [], "of a worker that is no more"
    buckets = {
        sample.labels["le"]: sample.value
        for sample in families["vkprovider_reconcile_seconds"].samples
        if sample.name.endswith("_bucket") and sample.labels["queue"] == "lablets" and sample.labels["result"] == "ok"
    }
    assert (buckets["0.1"], buckets["0.5"], buckets["+Inf"]) == (0, 1, 1)


async def test_every_queue_is_measured(replica: Provider) -> None:
    families = await exported(replica)
    built = {queue.name for queue in vars_of(replica.base.queues)}
    assert len(built) == 8
    for name in ("vkprovider_queue_depth", "vkprovider_queue_wait_seconds", "vkprovider_reconcile_seconds"):
        assert {sample.labels["queue"] for sample in families[name].samples} == built
    stats = parts.stats(replica.base.ctx, replica.base.membership, replica.process.parts)
    assert stats["queues"].keys() == built


def vars_of(queues: Queues) -> list[KeyedQueue[str]]:
    return [getattr(queues, field.name) for field in dataclasses.fields(queues)]


async def test_times_of_an_instance_end_with_it(replica: Provider) -> None:
    registry = registry_of(replica.process.measures)
    queue = replica.base.queues.lablets

    running = asyncio.create_task(queue.run(replica.labs.lablets.reconcile))
    queue.add("uid-1")  # nobody knows it, so its turn is short
    assert await queue.drain(5)
    running.cancel()
    assert b'instance_reconciliation_duration_seconds_count{instance_id="uid-1"} 1.0' in await exposition(registry)
    queue.forget("uid-1")
    assert b"uid-1" not in await exposition(registry)
