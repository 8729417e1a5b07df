"""A tenant attacks a shared installation in every way that the security review found, while another one works.

The second tenant's lablets become Ready as fast as without the attacks, the provider's memory stays bounded, and each
attack leaves a reason on the object that it concerns, an Event there, and a count. `HOSTILE_SEED` repeats a run.
"""

import os
import random
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.support.attacks import DEFINITIONS, Mallory
from tests.support.churn import Churn, p99
from tests.support.cluster import Cluster, condition, is_ready, waiting_reason
from tests.support.extra import CMLWORKERS
from tests.support.replicas import Replicas
from tests.support.topologies import definition, topology
from tests.support.waiting import until
from vkpsandbox import Sandbox

LABLETS: Final = 40
"""Of the second tenant in each of three phases: undisturbed, disturbed, undisturbed again."""
RATIO_MAX: Final = 1.5
MEMORY_BYTES_MAX: Final = 250 * 2**20
ROUNDS_MIN: Final = 3
SETTINGS: Final = {"VKPROVIDER_EVENTS_SECRET": "the-secret-of-all-events"}


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """Three workers whose hosts boot in a second, a replica, and an LDS."""
    directory = tmp_path_factory.mktemp("tenant")
    with Sandbox.up(
        "tenant",
        directory=directory,
        workers=3,
        lds=True,
        worker_args=[("--boot-seconds=1",)] * 3,
        provider_env=SETTINGS,
        tied=True,
    ) as made:
        yield made


@dataclass(frozen=True)
class Trace:
    """What an attack leaves behind.

    Attributes:
        says: What the object that it concerns says.
        reason: What that must be.
        events: Path of the object's namespace, and its name.
        counter: A sample of /metrics that grows.
    """

    says: Callable[[], str]
    reason: str
    counter: str
    events: tuple[str, str] | None = None


def warned(reason: str) -> str:
    return f'vkprovider_warnings_total{{reason="{reason}"}}'


def refused(reason: str) -> str:
    return f'vkprovider_http_refusals_total{{reason="{reason}"}}'


def traces(cluster: Cluster, mallory: Mallory) -> dict[str, Trace]:
    """Return where each attack shows."""
    space = mallory.namespace

    def pod_says(name: str) -> str:
        found = cluster.pod(space, name)
        return waiting_reason(found) or str((found or {}).get("status", {}).get("reason", ""))

    def worker_says(name: str) -> str:
        return str(condition(cluster.get(f"{CMLWORKERS}/{name}"), "Ready").get("reason"))

    def definition_says(name: str) -> str:
        return str(condition(cluster.get(f"{DEFINITIONS}/{name}"), "Ready").get("reason"))

    def event_says(name: str, reason: str) -> str:
        return reason if reason in {event["reason"] for event in cluster.events(space, name)} else ""

    return {
        "H1 a worker's password as a device's": Trace(
            lambda: pod_says("looter"), "SecretNotAllowed", warned("SecretNotAllowed"), (space, "looter")
        ),
        "H1 a worker's password for another host": Trace(
            lambda: worker_says("trap"), "SecretNotAllowed", warned("SecretNotAllowed"), ("default", "trap")
        ),
        "H2 claims that cannot be written": Trace(
            lambda: event_says("own-1", "AnnotationInvalid"),
            "AnnotationInvalid",
            warned("AnnotationInvalid"),
            (space, "own-1"),
        ),
        "H3 documents that explode": Trace(
            lambda: definition_says("bomb-0"), "TopologyInvalid", warned("TopologyInvalid"), ("default", "bomb-0")
        ),
        "M1 floods of the page": Trace(lambda: "", "", refused("TokenInvalid")),
        "M2 a token that is not meant for the page": Trace(lambda: "", "", refused("TokenInvalid")),
        "M4 another tenant's lab": Trace(lambda: "", "", refused("NotAllowed")),
        "M5 M6 squatters with long annotations": Trace(
            lambda: pod_says("squatter-0"), "NotALablet", warned("NotALablet"), (space, "squatter-0")
        ),
        "L1 L3 headers and ids of any bytes": Trace(lambda: "", "", refused("SecretMissing")),
        "V1 a slot that is over": Trace(lambda: str(is_ready(cluster.pod(space, "own-5"))), "True", ""),
        "B1 another learner's name": Trace(
            lambda: event_says("own-0", "UsernameRestored"),
            "UsernameRestored",
            warned("UsernameRestored"),
            (space, "own-0"),
        ),
        "B2 a second CMLWorker of one controller": Trace(
            lambda: worker_says("twin"), "SameController", warned("SameController"), ("default", "twin")
        ),
        "L10 a CMLWorker at a place inside": Trace(
            lambda: str(is_ready(cluster.get(f"{CMLWORKERS}/metadata-service"))), "False", ""
        ),
        "M7 transport that is not secure": Trace(
            lambda: str(condition(cluster.get(f"{CMLWORKERS}/trap"), "TransportInsecure").get("status")), "True", ""
        ),
    }


def sample(cluster: Cluster, name: str) -> float:
    """Read one sample of the provider's metrics."""
    text = Replicas(cluster).page("provider-1", "/metrics").decode()
    found = re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)
    return float(found[1]) if found else 0.0


def warnings(cluster: Cluster, trace: Trace) -> list[str]:
    """Return the reasons of an object's Warnings."""
    assert trace.events is not None
    return [event["reason"] for event in cluster.events(*trace.events) if event["type"] == "Warning"]


def high_water_bytes(cluster: Cluster) -> int:
    """The most memory that the provider has had."""
    pid = cluster.sandbox.process("provider-1").pid
    [line] = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


@pytest.mark.timeout(1200)
def test_another_tenant_notices_nothing(cluster: Cluster, namespace: str) -> None:
    seed = int(os.environ.get("HOSTILE_SEED") or random.SystemRandom().randrange(1, 10**6))
    print(f"HOSTILE_SEED={seed} make faults ONLY=hostile_tenant plays the same attacks")  # noqa: T201 (to repeat it)
    cluster.define(definition("shared", topology({"h0": "alpine"}, {"h0": ["serial:5001"]})))
    churn = Churn(cluster, "default", "shared")
    churn.run(10)  # the first lablets pay for what is done once; they belong to no phase
    before = churn.run(LABLETS)

    mallory = Mallory(cluster, namespace, random.Random(seed))
    mallory.begin(cluster.cmlworker(cluster.workers[0]))
    over, errors = threading.Event(), list[BaseException]()

    def attack() -> None:
        try:
            while not over.is_set():
                mallory.attack()
        except BaseException as error:  # noqa: BLE001 (shown below)
            errors.append(error)

    attacker = threading.Thread(target=attack)
    attacker.start()
    try:
        disturbed = churn.run(LABLETS)
    finally:
        over.set()
        attacker.join(120)
    assert not errors, errors
    assert mallory.rounds >= ROUNDS_MIN, mallory.rounds
    after = churn.run(LABLETS)

    left = traces(cluster, mallory)
    for finding, trace in left.items():
        said = until(lambda trace=trace: trace.says() == trace.reason and "yes", 90, f"{finding}: {trace.says()!r}")  # type: ignore[misc]
        assert said
        if trace.events is not None:
            until(lambda trace=trace: warnings(cluster, trace), 30, f"{finding}: no Event")  # type: ignore[misc]
        if trace.counter:
            assert sample(cluster, trace.counter) > 0, f"{finding}: {trace.counter} is 0"
    passwords = [worker.password.encode() for worker in cluster.workers]
    assert not any(word in text for text in mallory.listener.heard for word in (*passwords, b"/authenticate"))
    log = cluster.sandbox.layout.log("provider-1").read_text(errors="replace")
    assert "Traceback" not in log
    assert not any(word.decode() in log for word in passwords)

    undisturbed_s, disturbed_s, memory = p99(before + after), p99(disturbed), high_water_bytes(cluster)
    report(left, mallory, before, disturbed, after, memory)
    assert disturbed_s <= RATIO_MAX * undisturbed_s
    assert memory < MEMORY_BYTES_MAX


def report(
    left: dict[str, Trace],
    mallory: Mallory,
    before: list[float],
    disturbed: list[float],
    after: list[float],
    memory: int,
) -> None:
    """Print the scenario's figures."""
    for finding, trace in left.items():
        print(f"{finding}: {trace.reason or '-'}, {trace.counter or '-'}")  # noqa: T201 (the figures)
    print(  # noqa: T201 (the figures)
        f"{mallory.rounds} rounds of {len(mallory.attacks)} attacks; Ready p99 {p99(disturbed):.2f} s, undisturbed "
        f"{p99(before + after):.2f} s ({p99(before):.2f} s before, {p99(after):.2f} s after), ratio "
        f"{p99(disturbed) / p99(before + after):.2f}; memory at most {memory / 2**20:.0f} MiB"
    )
