"""Pages of replicas that are processes, as operators, users and the LDS meet them (R000-024, 025, 114, 123…125, C55).

One hears what another was told, and they outlive an API server that is stopped.
"""

import asyncio
import dataclasses
import http.client
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml

from tests.cluster.replicas import REPLICAS, SECRET
from tests.support.cluster import Cluster
from tests.support.extra import SYSTEM
from tests.support.replicas import Replicas
from tests.support.topologies import definition, deployment
from tests.support.waiting import until
from vkprovider.labs.controllers.session.inbox import Inbox
from vkprovider.labs.pure.session import inbox
from vkprovider.platform.http.access import REMEMBER_S
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.events import EventRecorder
from vkprovider.platform.runtime.context import Context
from vkprovider.platform.settings import KubeSettings
from vkpsandbox import Sandbox

EVERYONE = range(REPLICAS)
EVENTS = f"/api/v1/namespaces/{SYSTEM}/configmaps?labelSelector=vkprovider.io/component=session-events"


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    text: str

    @property
    def json(self) -> dict[str, Any]:
        decoded: dict[str, Any] = json.loads(self.text)
        return decoded


class Surface:
    """The replicas of the provider and the tokens of those who ask them."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.cluster = Cluster(sandbox)
        self.replicas = [sandbox.process(f"provider-{n}").url.removeprefix("http://") for n in range(1, REPLICAS + 1)]
        self.tokens: dict[str, str] = {}

    def ask(self, replica: int, path: str, token: str = "", method: str = "GET") -> Answer:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return self.send(replica, method, path, None, headers)

    def send(self, replica: int, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Answer:
        connection = http.client.HTTPConnection(self.replicas[replica], timeout=10)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return Answer(answer.status, dict(answer.headers), answer.read().decode())
        finally:
            connection.close()

    def say(self, replica: int, kind: str, session: str, id_: str, at: datetime | None = None) -> Answer:
        """Send a session event as the Lab Delivery System does; `id_` tells the events of one session apart."""
        event = {
            "specversion": "1.0",
            "id": f"{session}/{id_}",
            "source": "https://lds",
            "type": f"session.{kind}",
            "subject": session,
        }
        if at is not None:
            event["time"] = at.isoformat()
        headers = {"Content-Type": "application/cloudevents+json", "Authorization": f"Bearer {SECRET}"}
        return self.send(replica, "POST", "/events", json.dumps(event).encode(), headers)

    def account(self, name: str, role: str, namespace: str = "") -> str:
        """Make a ServiceAccount, bind a ClusterRole to it, in one namespace or in all; give its token."""
        kubectl = self.cluster.kubectl
        kubectl("create", "serviceaccount", name)
        if role:
            where = ["rolebinding", name, f"--namespace={namespace}"] if namespace else ["clusterrolebinding", name]
            kubectl("create", *where, f"--clusterrole={role}", f"--serviceaccount=default:{name}")
        self.tokens[name] = kubectl("create", "token", name, "--audience=vkprovider.io").stdout.strip()
        return self.tokens[name]

    def rows(self) -> dict[str, dict[str, Any]]:
        """Read what the replicas noted, from the API server, with every row of this installation."""
        found = self.cluster.items(EVENTS)
        assert {o["metadata"]["annotations"]["vkprovider.io/installation"] for o in found} <= {self.installation}
        rows = [json.loads(o["data"]["session.json"]) for o in found]
        assert len({row["session"] for row in rows}) == len(rows), "one for each session"
        return {row["session"]: row for row in rows}

    @property
    def installation(self) -> str:
        found = self.cluster.get("/api/v1/namespaces/kube-system")
        assert found
        return str(found["metadata"]["uid"])


@pytest.fixture(scope="module")
def surface(sandbox: Sandbox) -> Iterator[Surface]:
    """Four lablets in `default`, on workers that the replicas share, and the accounts of who asks."""
    made = Surface(sandbox)
    cluster = made.cluster
    until(Replicas(cluster).is_balanced, 90)
    made.account("nobody", "")
    made.account("viewer", "view")
    made.account("chief", "cluster-admin")
    cluster.define(definition("faced"))
    cluster.apply(deployment("faced", "faced", 4))
    cluster.wait_ready("default", 4)
    yield made
    cluster.empty("default")  # after the outage the garbage collector may not work yet
    cluster.heal()


# ------------------------------------------------------------------------------------------------ probes


def test_r000_123_health_has_the_shape_that_is_known(surface: Surface) -> None:
    bodies = [surface.ask(n, "/health").json for n in EVERYONE]
    for body in bodies:
        assert body["status"] == "healthy"
        assert body["is_leader"] is True, "each replica owns a node"
        when = datetime.strptime(body["last_reconciliation"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
        assert timedelta(0) <= datetime.now(UTC) - when < timedelta(seconds=30)
    assert len({body["instance_id"] for body in bodies}) == REPLICAS
    assert sum(body["instances_managed"] for body in bodies) == 4
    assert sum(body["instances_running"] for body in bodies) == 4
    nodes = [node for body in bodies for node in body["owned_nodes"]]
    assert sorted(nodes) == sorted(worker.name for worker in surface.cluster.workers)


def test_r000_124_ready(surface: Surface) -> None:
    answer = surface.ask(0, "/ready")
    assert (answer.status, answer.json) == (200, {"ready": True, "missing": []})


# ------------------------------------------------------------------------------------------------ who may ask


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/info"),
        ("GET", "/admin/stats"),
        ("POST", "/admin/trigger-reconcile"),
        ("GET", "/labs/x/download"),
        ("GET", "/labs/x/login"),
    ],
)
def test_what_is_no_probe_is_for_users_of_the_cluster(surface: Surface, method: str, path: str) -> None:
    answer = surface.ask(0, path, method=method)
    assert (answer.status, answer.json["reason"]) == (401, "TokenMissing")
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    answer = surface.ask(0, path, "made-up", method=method)
    assert (answer.status, answer.json["reason"]) == (401, "TokenInvalid")
    if not path.startswith("/labs"):
        answer = surface.ask(0, path, surface.tokens["nobody"], method=method)
        assert (answer.status, answer.json["reason"]) == (403, "NotAllowed")
        assert path in answer.json["message"]
        assert "system:serviceaccount:default:nobody" in answer.json["message"]


def test_r000_124_info_and_stats_are_for_who_may_view(surface: Surface) -> None:
    token = surface.tokens["viewer"]
    assert surface.ask(0, "/info", token).json["namespace"] == SYSTEM
    stats = [surface.ask(n, "/admin/stats", token).json for n in EVERYONE]
    assert sum(s["claims"] for s in stats) == 4
    assert sum(s["lablets_by_state"].get("READY", 0) for s in stats) == 4
    assert sum(s["steps"]["IMPORT"] for s in stats) >= 4
    assert surface.ask(0, "/admin/trigger-reconcile", token, "POST").status == 403


def test_r000_125_a_pass_is_started_now(surface: Surface) -> None:
    """Nothing changes and nobody looks again for ten minutes, unless somebody asks."""
    token = surface.tokens["chief"]

    def runs() -> int:
        return int(surface.ask(0, "/admin/stats", token).json["queues"]["lablets"]["runs"])

    before, managed = runs(), surface.ask(0, "/health").json["instances_managed"]
    answer = surface.ask(0, "/admin/trigger-reconcile", token, "POST")
    assert answer.status == 202
    assert answer.json == {"triggered": True, "workers": 1, "lablets": managed, "definitions": 1}
    until(lambda: runs() >= before + managed, 15, "no pass was made")
    assert surface.ask(0, "/admin/trigger-reconcile", token).status == 405


def test_reviews_are_remembered(surface: Surface) -> None:
    """However often a dashboard asks, the API server hears of it every few seconds."""

    def reviews() -> int:
        lines = map(json.loads, surface.cluster.sandbox.layout.audit_log.read_text().splitlines())
        return sum(line["verb"] == "create" and line["objectRef"]["resource"] == "tokenreviews" for line in lines)

    token = surface.account("dashboard", "view")
    before, began = reviews(), time.monotonic()
    for _ in range(30):
        assert surface.ask(0, "/admin/stats", token).status == 200
    allowed = 1 + (time.monotonic() - began) / REMEMBER_S
    until(lambda: reviews() > before, 15, "the token was not reviewed")
    assert reviews() - before <= allowed


# ------------------------------------------------------------------------------------------------ labs as files


def test_r000_114_any_replica_hands_out_any_lab(surface: Surface) -> None:
    teacher = surface.account("teacher", "vkprovider-download", "default")
    for pod in surface.cluster.pods("default"):
        lab = surface.cluster.lab_of(pod)
        assert lab
        for key in (lab["id"], pod["metadata"]["uid"]):
            for replica in EVERYONE:
                path = f"/labs/{key}/download"
                # Another replica knows a new lab's id a few seconds later.
                until(lambda n=replica, path=path: surface.ask(n, path, teacher).status != 503, 30)  # type: ignore[misc]
                answer = surface.ask(replica, path, teacher)
                assert answer.status == 200, answer.text
                assert answer.headers["Content-Type"].startswith("application/yaml")
                assert pod["metadata"]["name"] in answer.headers["Content-Disposition"]
                topology = yaml.safe_load(answer.text)
                assert topology["lab"]["title"] == lab["lab_title"]
                assert [node["label"] for node in topology["nodes"]] == ["h0"]


def test_a_lab_is_handed_out_to_who_may_have_it(surface: Surface) -> None:
    """The right is one of the namespace that the claim names: `view`, `edit` and the right elsewhere are none."""
    surface.cluster.kubectl("create", "namespace", "elsewhere")
    stranger = surface.account("stranger", "vkprovider-download", "elsewhere")
    editor = surface.account("editor", "edit", "default")
    pod = surface.cluster.pods("default")[0]
    lab = surface.cluster.lab_of(pod)
    assert lab
    for token in (surface.tokens["viewer"], stranger, editor):
        answer = surface.ask(0, f"/labs/{lab['id']}/download", token)
        assert (answer.status, answer.json["reason"]) == (403, "NotAllowed")
        assert "lablets.vkprovider.io/download of the Pod that has this lab" in answer.json["message"]
        assert pod["metadata"]["name"] not in answer.json["message"], "of a Pod that the caller may not see"
    answer = surface.ask(0, "/labs/4711/download", stranger)
    assert (answer.status, answer.json["reason"]) == (404, "LabUnknown")


def test_a_forged_report_opens_no_lab(surface: Surface) -> None:
    """Who may edit pods somewhere reports another's lab as theirs; the claim knows better."""
    pod = surface.cluster.pods("default")[0]
    lab = surface.cluster.lab_of(pod)
    assert lab
    forger = surface.account("forger", "vkprovider-download", "kube-public")
    node = pod["spec"]["nodeName"]
    forged = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "forged", "annotations": {"vkprovider.io/lab-id": lab["id"]}},
        "spec": {
            "nodeName": node,
            "containers": [{"name": "x", "image": "x"}],
            "tolerations": [{"operator": "Exists"}],
        },
    }
    surface.cluster.kubectl("create", "serviceaccount", "default", "--namespace=kube-public", check=False)
    surface.cluster.apply(forged, namespace="kube-public")

    def seen() -> bool:
        status = json.loads(
            surface.cluster.kubectl("get", "pod", "forged", "--namespace=kube-public", "-o", "json").stdout
        )["status"]
        return "NotALablet" in json.dumps(status)

    until(seen, 15, "the owner of the Node has not seen the forged Pod")
    for replica in (*EVERYONE,) * 7:
        assert surface.ask(replica, f"/labs/{lab['id']}/download", forger).status == 403
        time.sleep(0.1)
    surface.cluster.kubectl("delete", "pod", "forged", "--namespace=kube-public")


def test_a_login_is_a_right_of_its_own(surface: Surface) -> None:
    """Neither `edit` in the namespace nor `view` of everything is a way in."""
    pod = surface.cluster.pods("default")[0]
    path = f"/labs/{pod['metadata']['uid']}/login"
    for name in ("viewer", "editor"):
        answer = surface.ask(0, path, surface.tokens[name])
        assert (answer.status, answer.json["reason"]) == (403, "NotAllowed")
    portal = surface.account("portal", "vkprovider-login", "default")
    answer = surface.ask(1, path, portal)
    assert (answer.status, answer.json["reason"]) == (409, "NoSession")
    assert surface.ask(0, f"/labs/{pod['metadata']['uid']}/download", portal).status == 403


def test_a_lab_that_is_gone_leaves_what_its_devices_held(surface: Surface) -> None:
    cluster, token = surface.cluster, surface.account("downloader", "vkprovider-download", "default")
    pod = cluster.pods("default")[0]
    uid = pod["metadata"]["uid"]
    cluster.kubectl("delete", "pod", pod["metadata"]["name"])
    cluster.wait_ready("default", 4)
    for replica in EVERYONE:
        path = f"/labs/{uid}/download"
        until(lambda n=replica, path=path: "kept" in surface.ask(n, path, token).text, 30)  # type: ignore[misc]
        found = yaml.safe_load(surface.ask(replica, path, token).text)
        assert (found["kept"]["podUID"], found["kept"]["pod"]) == (uid, pod["metadata"]["name"])
        assert "h0" in found["configs"] | found["faults"]
        assert surface.ask(replica, path, surface.tokens["viewer"]).status == 403


def test_a_namespace_inherits_nothing_of_an_earlier_one_of_its_name(surface: Surface) -> None:
    cluster = surface.cluster
    cluster.kubectl("create", "namespace", "course")
    cluster.apply(deployment("exam", "faced", 1), namespace="course")
    cluster.wait_ready("course", 1)
    token = surface.account("course", "vkprovider-download", "course")
    path = f"/labs/{cluster.pods('course')[0]['metadata']['uid']}/download"
    cluster.kubectl("delete", "deployment", "exam", "--namespace=course")
    until(lambda: "kept" in surface.ask(0, path, token).text, 30)
    cluster.kubectl("delete", "namespace", "course", "--timeout=60s")
    cluster.kubectl("create", "namespace", "course")
    given = ("--clusterrole=vkprovider-download", "--serviceaccount=default:course")
    cluster.kubectl("create", "rolebinding", "again", "--namespace=course", *given)
    until(
        lambda: surface.ask(0, path, token).status == 404, 30, "the right of the new namespace shows the old one's lab"
    )
    assert surface.ask(0, path, token).json["reason"] == "LabUnknown"


# ------------------------------------------------------------------------------------------------ session events


def report(surface: Surface, session: str) -> None:
    """Have a Pod report a session, as its owner will."""
    pod = surface.cluster.pods("default")[0]
    path = f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}"
    surface.cluster.patch(path, {"metadata": {"annotations": {"vkprovider.io/lds-session-id": session}}})
    until(lambda: surface.say(0, "paused", session, "warm-up").status == 202)


def test_event_reaches_every_replica_whoever_receives_it(surface: Surface) -> None:
    at = datetime(2026, 1, 31, 12, tzinfo=UTC)
    report(surface, "s-known")
    until(lambda: surface.say(1, "started", "s-known", "e-1", at).status == 202, what="the other one does not know it")
    assert surface.rows()["s-known"]["started"] == int(at.timestamp())
    token = surface.tokens["viewer"]
    for replica in EVERYONE:
        until(lambda n=replica: surface.ask(n, "/admin/stats", token).json["sessions_in_inbox"] >= 1)  # type: ignore[misc]


def test_twice_late_and_out_of_order_change_nothing(surface: Surface) -> None:
    start, end = datetime(2026, 1, 31, 12, tzinfo=UTC), datetime(2026, 1, 31, 14, tzinfo=UTC)
    report(surface, "s-order")
    until(lambda: surface.say(1, "ended", "s-order", "e-2", end).status == 202)
    for replica in (0, 1, 1, 0):
        surface.say(replica, "started", "s-order", "e-1", start)
        answer = surface.say(replica, "ended", "s-order", "e-2", end)
        assert (answer.status, answer.json["outcome"]) == (202, "duplicate")
    surface.say(0, "started", "s-order", "e-3", end)
    row = surface.rows()["s-order"]
    assert (row["started"], row["ended"]) == (int(start.timestamp()), int(end.timestamp()))


def test_unknown_session_is_noted_and_its_sender_asked_to_come_again(surface: Surface) -> None:
    answer = surface.say(0, "started", "s-early", "e-1")
    assert (answer.status, answer.json["outcome"]) == (503, "unknown-session")
    assert int(answer.headers["Retry-After"]) > 0
    assert surface.rows()["s-early"]["started"]
    assert surface.say(1, "started", "s-early", "e-1").status == 503
    report(surface, "s-early")
    until(lambda: surface.say(0, "started", "s-early", "e-1").json == {"outcome": "duplicate"})


def test_a_user_of_the_cluster_is_no_lds(surface: Surface) -> None:
    body = json.dumps({"specversion": "1.0", "id": "1", "source": "x", "type": "session.started", "subject": "s-evil"})
    headers = {"Content-Type": "application/cloudevents+json"}
    for token in ("", surface.tokens["chief"]):
        sent = headers | ({"Authorization": f"Bearer {token}"} if token else {})
        assert surface.send(0, "POST", "/events", body.encode(), sent).status == 401
    assert "s-evil" not in surface.rows()


def test_events_that_reach_both_replicas_at_once_are_all_noted(surface: Surface) -> None:
    sessions = [f"s-burst-{n}" for n in range(20)]
    kinds = [(session, kind) for session in sessions for kind in ("started", "ended")]
    with ThreadPoolExecutor(16) as pool:
        said = [
            pool.submit(surface.say, replica, kind, session, f"{kind}-1")
            for session, kind in kinds
            for replica in EVERYONE
        ]
        assert {answer.result().json["outcome"] for answer in said} == {"unknown-session"}
    rows = surface.rows()
    assert [s for s in sessions if not (rows[s]["started"] and rows[s]["ended"])] == []


@pytest.fixture
def heard() -> list[str]:
    """Sessions of which the third inbox had news."""
    return []


@pytest.fixture
def claimed() -> set[str]:
    """Sessions that claims of the third replica name."""
    return set()


@pytest.fixture
async def third(surface: Surface, heard: list[str], claimed: set[str]) -> AsyncIterator[Inbox]:
    """The inbox of one more replica."""
    kube = await KubeClient.connect(KubeSettings(kubeconfig=str(surface.cluster.sandbox.kubeconfig)))
    events = EventRecorder(kube, component="test", instance="third")
    made = Inbox(
        Context(kube, events, surface.installation, "third", SYSTEM),
        lambda: True,
        changed=heard.append,
        claimed=claimed.__contains__,
    )
    running = asyncio.create_task(made.objects.run())
    await made.objects.synced.wait()
    yield made
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await kube.close()


async def eventually(predicate: Callable[[], object]) -> None:
    async with asyncio.timeout(15):
        while not predicate():  # noqa: ASYNC110 (what is awaited has no event)
            await asyncio.sleep(0.02)


async def test_owner_hears_takes_and_drops(surface: Surface, third: Inbox, heard: list[str]) -> None:
    await asyncio.to_thread(surface.say, 0, "started", "s-taken", "e-1")
    await eventually(lambda: "s-taken" in heard)
    before = third.rows["s-taken"]
    assert before.started
    await asyncio.to_thread(surface.say, 1, "ended", "s-taken", "e-2")
    await third.drop(before)  # what was taken is not all that was said: nothing is lost, whoever is faster
    await eventually(lambda: third.rows["s-taken"].ended)
    await third.drop(third.rows["s-taken"])
    await eventually(lambda: "s-taken" not in third.rows)
    assert "s-taken" not in surface.rows()

    def is_duplicate() -> bool:
        """Say it again, until the replica has seen that the row is gone: before, it asks the sender to come again."""
        return bool(surface.say(1, "ended", "s-taken", "e-2").json["outcome"] == "duplicate")

    await asyncio.to_thread(until, is_duplicate, 15, "it was noted once, and has been taken")
    assert "s-taken" not in surface.rows()


async def test_sessions_that_nobody_knows_are_listed_and_dropped_after_a_day(
    surface: Surface, third: Inbox, claimed: set[str]
) -> None:
    await asyncio.to_thread(surface.say, 0, "started", "s-stray", "e-1")
    await eventually(lambda: "s-stray" in third.rows)
    assert "s-stray" in {row.session for row in third.strays()}
    assert "s-stray" not in {row.session for row in third.strays(older_s=3600)}
    claimed.add("s-stray")
    assert "s-stray" not in {row.session for row in third.strays()}
    claimed.clear()
    await third.prune()
    assert "s-stray" in surface.rows()
    third._ctx = dataclasses.replace(third._ctx, wall=lambda: time.time() + inbox.KEEP_S + 60)
    await third.prune()
    assert "s-stray" not in surface.rows()


# ------------------------------------------------------------------------------------------------ an outage


@pytest.mark.timeout(480)  # what lost the API server comes back one after the other, and the module ends here
def test_liveness_survives_the_api_server_and_readiness_does_not(surface: Surface) -> None:
    sandbox = surface.cluster.sandbox
    sandbox.stop("kube-apiserver")
    try:
        until(lambda: surface.ask(0, "/ready").status == 503, 60, "ready although no Lease could be renewed")
        assert surface.ask(0, "/ready").json["missing"] == ["lease"]
        health = surface.ask(0, "/health")
        assert (health.status, health.json["status"]) == (200, "fenced")
        assert surface.ask(0, "/info", "never-seen").json["reason"] == "ApiServerUnavailable"
        assert surface.say(0, "started", "s-outage", "e-1").json["outcome"] == "failed"
        assert surface.ask(0, "/metrics").status == 200
    finally:
        sandbox.start("kube-apiserver")
    until(lambda: surface.ask(0, "/ready").status == 200, 90, "not ready again")
    assert surface.say(0, "started", "s-outage", "e-1").json["outcome"] == "unknown-session"
    surface.cluster.wait_ready("default", 4)
