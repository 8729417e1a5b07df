"""Two installations and people share one worker: what is not exactly ours is never touched, whatever happens to us."""

import os
import random
import uuid
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.support.cluster import Cluster, container, is_ready
from tests.support.extra import cmlworker, secret
from tests.support.history import History
from tests.support.simulator import Simulator
from tests.support.topologies import definition, pod, topology
from tests.support.waiting import until
from vkpsandbox import Sandbox

NAME = "netlab"
"""Of the definition in both installations, so that their labs' titles look alike."""
DELETIONS, FORCED, KILLS = 20, 18, 12
"""How the 50 rounds end one lablet each: gracefully, by force, and by force while the provider lies dead."""
ALIVE = 4
"""Lablets at any time."""
NEIGHBOURS, HAND_MADE = 3, 8
PODS = "default"
SOON = {"LEADER_LEASE_TTL": "6"}
"""So that a provider that was killed has its node back soon; 50 rounds wait for it often."""


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """The installation that suffers, and the worker that all share."""
    directory = tmp_path_factory.mktemp("first")
    arguments = [["--boot-seconds=0.1-1"]]
    with Sandbox.up(
        "first", directory=directory, workers=1, worker_args=arguments, provider_env=SOON, tied=True
    ) as made:
        yield made


@pytest.fixture(scope="module")
def neighbour(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Another installation, with a control plane of its own, that uses the same worker under another name."""
    [shared] = sandbox.workers
    with Sandbox.up("second", directory=tmp_path_factory.mktemp("second"), workers=1, tied=True) as made:
        cluster = Cluster(made)
        account = {"username": shared.username, "password": shared.password}
        cluster.apply(secret("shared", account, shared.url))
        cluster.apply(cmlworker("shared", shared.url, environment="default"))
        until(lambda: is_ready(cluster.get("/api/v1/nodes/vnode.shared")), 90, "the neighbour's node is not Ready")
        yield cluster


def lab_ids(worker: Simulator) -> set[str]:
    """List the ids of all labs."""
    return set(worker.cml("GET", "/labs?show_all=true"))


class Rounds:
    """Random rounds of trouble in one installation.

    Attributes:
        happened: What really happened, and how often.
        pids: Of the provider, one after another.
        uids: Of all Pods there ever were.
        others: Ids of labs that are not this installation's; some have the title of one that is.
    """

    def __init__(self, cluster: Cluster, dice: random.Random) -> None:
        self.cluster = cluster
        self.worker = cluster.workers[0]
        self.dice = dice
        self.happened: Counter[str] = Counter()
        self.pids = {cluster.sandbox.process("provider-1").pid}
        self.uids: set[str] = set()
        self.others: set[str] = set()
        self._alive: dict[str, str] = {}
        self._history = History(self.worker)

    def create(self) -> None:
        """Make one more lablet; nobody waits for it."""
        name = f"lab-{len(self.uids)}"
        self.cluster.apply(pod(name, NAME))
        made = self.cluster.pod(PODS, name)
        assert made
        self._alive[name] = made["metadata"]["uid"]
        self.uids.add(made["metadata"]["uid"])

    def end(self, how: str) -> None:
        """End a lablet, chosen at random among those that have a lab, in one of three ways."""
        name, uid = self.dice.choice(until(self._with_a_lab, 180, "no lablet has a lab"))
        del self._alive[name]
        if how == "kill":
            self._kill()
        force = [] if how == "delete" else ["--force", "--grace-period=0"]
        self.cluster.kubectl("delete", "pod", name, "--wait=false", *force)
        self.happened[how] += 1
        if how != "delete":
            assert self.cluster.pod(PODS, name) is None
            self.happened["lab was left"] += any(title.endswith(uid) for title in self._titles())
        if how == "kill":
            if self.dice.random() < 0.5:  # the scheduler binds it meanwhile
                self.create()
                self.happened["made meanwhile"] += 1
            self.pids.add(self.cluster.sandbox.start("provider-1").pid)

    def _kill(self) -> None:
        status = self.cluster.sandbox.kill("provider-1")
        assert status.state != "running", status

    def _titles(self) -> list[str]:
        """The titles of our labs on the worker: reading them one by one would meet labs that are just going."""
        there = lab_ids(self.worker) - self.others
        return [entry["title"] for entry in self._history.entries() if "title" in entry and entry["lab"] in there]

    def _with_a_lab(self) -> list[tuple[str, str]]:
        titles = self._titles()
        return sorted((name, uid) for name, uid in self._alive.items() if any(title.endswith(uid) for title in titles))

    @property
    def alive(self) -> int:
        """How many lablets there should be."""
        return len(self._alive)


def import_lab(worker: Simulator, title: str, notes: str, *, start: bool) -> str:
    """Import a lab as somebody else would; give its id."""
    lab = yaml.safe_load(topology({"h0": "alpine"}, title=title))
    lab["lab"]["notes"] = notes
    lab_id = str(worker.cml("POST", "/import", lab)["id"])  # JSON is YAML
    if start:
        worker.cml("PUT", f"/labs/{lab_id}/start")
    return lab_id


def hand_made(cluster: Cluster, worker: Simulator, dice: random.Random, taken_title: str) -> set[str]:
    """Make labs that are nobody's lablets, with titles as ours, running ones and some never started; give their ids."""
    found = cluster.get(f"/apis/vkprovider.io/v1alpha1/labletdefinitions/{NAME}")
    assert found

    def look_alike() -> str:
        return f"{NAME}-{found['metadata']['uid'][:8]}-{uuid.UUID(int=dice.getrandbits(128), version=4)}"

    other = f"vkprovider installation={uuid.UUID(int=dice.getrandbits(128), version=4)}"
    titles = (look_alike(), taken_title)
    labs = [(title, notes, start) for title in titles for notes in ("", other) for start in (True, False)]
    return {import_lab(worker, title, notes, start=start) for title, notes, start in labs}


def neighbours_labs(neighbour: Cluster, worker: Simulator) -> dict[str, str]:
    """Let the neighbour run lablets on the shared worker; give Pod UID → lab id."""
    neighbour.define(definition(NAME))
    on_it = {"kubernetes.io/hostname": "vnode.shared"}
    neighbour.apply(*(pod(f"theirs-{n}", NAME, nodeSelector=on_it) for n in range(NEIGHBOURS)))
    pods = neighbour.wait_ready(PODS, NEIGHBOURS)
    return {uid: (worker.lab_of(uid) or {})["id"] for uid in (p["metadata"]["uid"] for p in pods)}


def look(worker: Simulator, labs: set[str]) -> dict[str, Any]:
    """What must not change of labs: title, notes, state, and the states of their devices."""
    return {
        lab["id"]: (lab["lab_title"], lab["lab_notes"], lab["state"], [d["state"] for d in worker.devices(lab["id"])])
        for lab in worker.labs()
        if lab["id"] in labs
    }


def test_neighbours_labs_survive_everything(cluster: Cluster, neighbour: Cluster) -> None:
    seed = int(os.environ.get("NEIGHBOURS_SEED") or random.randrange(2**32))
    print(f"NEIGHBOURS_SEED={seed} make faults ONLY=neighbours plays the same rounds")  # noqa: T201 (to repeat it)
    dice = random.Random(seed)
    [worker] = cluster.workers
    cluster.define(definition(NAME))
    theirs = neighbours_labs(neighbour, worker)
    rounds = Rounds(cluster, dice)
    for _ in range(ALIVE):
        rounds.create()
    first = cluster.wait_ready(PODS, ALIVE)[0]
    title = (cluster.lab_of(first) or {})["lab_title"]
    others = hand_made(cluster, worker, dice, title) | set(theirs.values())
    rounds.others = others
    until(lambda: not any("STARTED" in devices for *_, devices in look(worker, others).values()), 45)
    before, history = look(worker, others), History(worker)
    assert len(before) == NEIGHBOURS + HAND_MADE
    foreign = {"ours": ALIVE, "foreign": len(others)}
    until(lambda: cluster.cmlworker(worker)["status"]["labs"] == foreign, 60, "the labs of others are not seen")

    plan = ["delete"] * DELETIONS + ["force"] * FORCED + ["kill"] * KILLS
    dice.shuffle(plan)
    for how in plan:
        if rounds.alive <= ALIVE:
            rounds.create()
        rounds.end(how)

    print(f"what happened: {dict(rounds.happened)}, {len(rounds.uids)} lablets")  # noqa: T201 (shown if it fails)
    assert {how: rounds.happened[how] for how in ("delete", "force", "kill")} == dict(Counter(plan))
    assert len(rounds.pids) == KILLS + 1, "the provider was not killed and started again each time"
    assert rounds.happened["lab was left"] >= KILLS, "forced deletions left nothing to clean up"
    cluster.kubectl("delete", "pods", "--all", "--wait=false")
    cluster.wait_gone(PODS, within_s=180)
    until(lambda: lab_ids(worker) <= others, 180, "labs of the first installation are left")

    assert look(worker, others) == before
    touched = [f"{entry['method']} {entry['path']}" for entry in history.entries() if entry["lab"] in others]
    assert touched == []
    after = neighbour.wait_ready(PODS, NEIGHBOURS)
    assert {p["metadata"]["uid"]: (p["metadata"]["annotations"]["vkprovider.io/lab-id"]) for p in after} == theirs
    assert {container(p)["restartCount"] for p in after} == {0}
    imported = [entry["title"] for entry in history.entries() if entry["path"].endswith("/import")]
    assert len(imported) == len(set(imported)), "a lab was imported twice"
    status = cluster.cmlworker(worker)["status"]
    until(lambda: cluster.cmlworker(worker)["status"]["labs"] == {"ours": 0, "foreign": len(others)}, 60, str(status))
