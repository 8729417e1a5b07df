"""Sessions while the LDS is away, while its events go astray, and while the provider dies: one for each lablet."""

import signal
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.cluster import Cluster, condition, container, is_ready
from tests.support.lds import LdsSide
from tests.support.replicas import CLAIMS
from tests.support.topologies import definition, pod
from tests.support.waiting import throughout, until
from vkpsandbox import Sandbox

NOTE = "vkprovider.io/"
STARTS = 30
IN_HAND = 8
"""Starts before the LDS hangs, some of which have a session that they do not know of."""
DOWN_S = 120
FORMS = "sessions"
"""The definition of all lablets here."""


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """Two workers, two replicas, and an LDS whose events go to both."""
    directory = tmp_path_factory.mktemp("faults")
    with Sandbox.up("faults", directory=directory, workers=2, replicas=2, lds=True, audit=True, tied=True) as made:
        yield made


@pytest.fixture
def kind(cluster: Cluster) -> str:
    cluster.define(definition(FORMS))
    return FORMS


def learner(name: str, kind: str, username: str, **spec: Any) -> dict[str, Any]:
    item = pod(name, kind, **spec)
    item["metadata"]["annotations"] = {f"{NOTE}username": username}
    return item


def state(found: dict[str, Any] | None) -> str:
    return str((found or {}).get("metadata", {}).get("annotations", {}).get(f"{NOTE}state", ""))


def wait_state(cluster: Cluster, namespace: str, wanted: str, within_s: float) -> dict[str, dict[str, Any]]:
    """Wait until all Pods of a namespace are in a state; give them by name."""

    def there() -> dict[str, dict[str, Any]]:
        pods = {found["metadata"]["name"]: found for found in cluster.pods(namespace)}
        late = {name: (state(found), found["status"].get("phase")) for name, found in pods.items()}
        late = {name: seen for name, seen in late.items() if seen[0] != wanted}
        assert not late, late
        return pods

    return until(there, within_s)


def reasons(cluster: Cluster, namespace: str) -> Counter[str]:
    """Why containers wait."""
    states = [container(found).get("state", {}) for found in cluster.pods(namespace)]
    return Counter(entry["waiting"]["reason"] for entry in states if "waiting" in entry)


def intents(cluster: Cluster) -> int:
    """How many rows name a session."""
    text = "".join(text for found in cluster.items(CLAIMS) for text in found.get("data", {}).values())
    return text.count('"session":')


def sessions_by_user(lds: LdsSide) -> Counter[str]:
    """Every session that was ever made."""
    return Counter(one["username"] for one in lds.sessions())


@pytest.mark.timeout(900)
def test_lds_is_down_for_two_minutes_during_thirty_starts(
    cluster: Cluster, lds: LdsSide, namespace: str, kind: str
) -> None:
    """It hangs with requests in its hands, answers 503, and is killed; nobody gets two sessions, or none."""
    users = {f"start-{number}": f"user-{number}" for number in range(STARTS)}
    items = [learner(name, kind, user) for name, user in users.items()]
    asked = max((one["number"] for one in lds.access_log()), default=0)
    lds.fault("lost_answer", "^POST /api/v1/sessions$", count=IN_HAND)
    lds.fault("status", "^(POST|PUT) /api/v1/sessions", status=503)
    cluster.apply(*items[:IN_HAND], namespace=namespace)
    until(lds.sessions, 90, "no session is made")  # and nobody has an answer
    began = time.monotonic()
    cluster.sandbox.kill(lds.process, signal.SIGSTOP)
    cluster.apply(*items[IN_HAND:], namespace=namespace)
    with pytest.raises(OSError, match="timed out"):
        lds.sessions()
    until(lambda: reasons(cluster, namespace)["LDSUnavailable"] > 0, 180, "nobody says that the LDS hangs")

    cluster.sandbox.kill(lds.process, signal.SIGCONT)
    until(lambda: lds.sessions() is not None, 45)
    while time.monotonic() - began < DOWN_S * 2 / 3:
        time.sleep(1)

    def refused() -> set[int]:
        return {one.get("status", 0) for one in lds.access_log(asked) if one["method"] in {"POST", "PUT"}}

    until(lambda: 503 in refused(), 180, "nobody asked again")

    cluster.sandbox.kill(lds.process)
    assert cluster.sandbox.process(lds.process).state == "stopped"
    while time.monotonic() - began < DOWN_S:
        time.sleep(1)
    assert not any(is_ready(found) for found in cluster.pods(namespace)), "the faults delayed nobody"
    cluster.sandbox.start(lds.process)  # its faults ended with it

    pods = wait_state(cluster, namespace, "READY", 90)
    assert sessions_by_user(lds) == Counter(dict.fromkeys(users.values(), 1))
    by_user = {one["username"]: one for one in lds.sessions()}
    for name, found in pods.items():
        session = by_user[users[name]]
        assert found["metadata"]["annotations"][f"{NOTE}lds-session-id"] == session["id"]
        assert session["state"] == "PENDING"
    assert {container(found)["restartCount"] for found in pods.values()} == {0}, "no lab was started twice for it"
    cluster.kubectl("delete", "pods", "--all", f"--namespace={namespace}", "--timeout=60s")
    assert {one["state"] for one in lds.sessions()} == {"ARCHIVED"}
    until(lambda: not any(worker.labs() for worker in cluster.workers), 45)


@pytest.mark.timeout(600)
def test_lds_is_down_while_lablets_end(cluster: Cluster, lds: LdsSide, namespace: str, kind: str) -> None:
    """The labs go all the same; the Pods stay until their sessions are archived."""
    cluster.apply(*(learner(f"end-{n}", kind, f"ends-{n}") for n in range(5)), namespace=namespace)
    pods = wait_state(cluster, namespace, "READY", 30)
    stored = cluster.sandbox.layout.workers / "lds.state"
    until(lambda: stored.read_text().count('"username":"ends-') == len(pods), 30, "the simulator has not stored all")
    cluster.sandbox.kill(lds.process)
    assert cluster.sandbox.process(lds.process).state == "stopped"
    cluster.kubectl("delete", "pods", "--all", f"--namespace={namespace}", "--wait=false")
    until(lambda: not any(worker.labs() for worker in cluster.workers), 180, "labs wait for the LDS")
    assert len(cluster.pods(namespace)) == len(pods)
    cluster.sandbox.start(lds.process)
    cluster.wait_gone(namespace, within_s=180)
    mine = [one for one in lds.sessions() if one["username"].startswith("ends-")]
    assert [one["state"] for one in mine] == ["ARCHIVED"] * 5


@pytest.mark.timeout(600)
def test_events_twice_out_of_order_or_at_the_other_replica_change_nothing(
    cluster: Cluster, lds: LdsSide, namespace: str, kind: str
) -> None:
    """Each replica owns one worker; events go to both in turn, each several times, the end before the beginning."""
    names = [f"event-{number}" for number in range(8)]
    cluster.apply(*(learner(name, kind, name, restartPolicy="Never") for name in names), namespace=namespace)
    pods = wait_state(cluster, namespace, "READY", 30)
    assert len({found["spec"]["nodeName"] for found in pods.values()}) == 2, "both replicas have some"
    ids = {name: found["metadata"]["annotations"][f"{NOTE}lds-session-id"] for name, found in pods.items()}
    lds.event_fault("duplicate", copies=3)
    for name in names[:4]:
        lds.act(ids[name], "log-in")
    running = names[:4]
    until(lambda: all(state(cluster.pod(namespace, name)) == "RUNNING" for name in running), 90)
    assert all(state(cluster.pod(namespace, name)) == "READY" for name in names[4:])
    lds.event_fault("reorder", "started", delay_s=10)
    for name in names[4:6]:
        lds.act(ids[name], "log-in")
        lds.act(ids[name], "finish")
    for name in names[4:6]:
        until(lambda name=name: (cluster.pod(namespace, name) or {})["status"]["phase"] == "Succeeded", 120)  # type: ignore[misc]
    until(lambda: not lds.admin("GET", "/undelivered"), 120)

    sent = [one for one in lds.deliveries() if one["session"] in ids.values()]
    targets = {name: {one["target"] for one in sent if one["session"] == ids[name]} for name in names[:6]}
    assert all(len(each) == 2 for each in targets.values()), "each went to the wrong replica too"
    assert Counter(one["event"] for one in sent).most_common()[-1][1] >= 4
    late = [one["type"] for one in sent if one["session"] == ids[names[4]]]
    assert late.index("session.ended") < late.index("session.started")
    assert {state(cluster.pod(namespace, name)) for name in running} == {"RUNNING"}
    assert {state(cluster.pod(namespace, name)) for name in names[6:]} == {"READY"}
    for name in names[:6]:
        told = Counter({e["reason"]: e.get("count", 1) for e in cluster.events(namespace, name)})
        assert told["SessionStarted"] == 1, name
        assert told["SessionEnded"] == (name in names[4:6]), name
    assert {name: sessions_by_user(lds)[name] for name in names} == dict.fromkeys(names, 1)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("lacking", [(), ("--no-client-keys",), ("--no-client-keys", "--no-owners")], ids=str)
def test_provider_killed_between_create_and_store(
    tmp_path_factory: pytest.TempPathFactory, lacking: tuple[str, ...]
) -> None:
    """In the end each lablet has one live session, whether or not the LDS knows client keys and owners."""
    directory = tmp_path_factory.mktemp("killed")
    with Sandbox.up(
        "killed",
        directory=directory,
        workers=1,
        lds=True,
        lds_args=lacking,
        provider_env={"LEADER_LEASE_TTL": "6"},
        tied=True,
    ) as sandbox:
        assert sandbox.lds is not None
        cluster, lds = Cluster(sandbox), LdsSide(sandbox.lds)
        cluster.define(definition(FORMS))
        lds.fault("delay", "^POST /api/v1/sessions$", delay_s=10, count=5)
        cluster.apply(*(learner(f"killed-{n}", FORMS, f"killed-{n}") for n in range(5)))
        users = {f"killed-{n}" for n in range(5)}
        until(lambda: intents(cluster) == 5, 90, "not all are written down")
        throughout(lambda: lds.sessions() == [], 1)  # all are asked for, and nobody has an answer
        sandbox.kill("provider-1")
        until(lambda: sessions_by_user(lds) == Counter(users), 90, "what was asked for is made all the same")
        lds.clear_faults()
        sandbox.start("provider-1")
        pods = wait_state(cluster, "default", "READY", 60)
        ids = {name: found["metadata"]["annotations"][f"{NOTE}lds-session-id"] for name, found in pods.items()}
        if not lacking:
            assert sessions_by_user(lds) == Counter(users), "the client key gives the session that was made"
        else:
            assert sessions_by_user(lds) == Counter(dict.fromkeys(users, 2)), "nobody could know of the first ones"
        if "--no-owners" in lacking:  # then only an event tells of them
            for one in lds.sessions():
                if one["id"] not in ids.values():
                    lds.act(one["id"], "log-in")

        def one_each() -> bool:
            live = {one["id"] for one in lds.sessions() if one["state"] != "ARCHIVED"}
            assert live == set(ids.values()), (live, ids)
            return True

        until(one_each, 450)
        assert {state(found) for found in cluster.pods("default")} == {"READY"}, "a stray's event moves nobody"
        assert condition(cluster.pod("default", "killed-0"), f"{NOTE}SessionStarted").get("status") == "False"
