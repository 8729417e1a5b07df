"""Fifty users at once while replicas of the portal, the API server and the provider are killed: one lab for each.

Every user follows the own stream by whichever replica answers, and goes on where the stream broke off.
"""

import http.client
import itertools
import json
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from tests.support.cluster import Cluster, Refused, is_ready
from tests.support.replicas import Replicas
from tests.support.topologies import definition
from tests.support.waiting import until
from vkpsandbox import Sandbox
from vkpsandbox.controlplane.content import NAMESPACE
from vkpsandbox.controlplane.portal import HUB, LEARNERS, process_name

USERS: Final = 50
PORTALS: Final = (process_name(1), process_name(2))
MADE_S: Final = 150.0
"""The time until all have a lab, kills and boots included."""
GONE_S: Final = 150.0
AWAY_S: Final = 6.0
"""How long the API server hangs."""
DOWN_S: Final = 2.0
"""How long a killed process stays down."""
ROUTES: Final = "/nublado/spawner/v1"
MARKED: Final = "?labelSelector=vkprovider.io/portal"
WISH: Final = {"options": {"image_list": ["portal:1.0.0"], "size": ["small"]}, "env": {}}
ENDS: Final = {"complete", "failed"}


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """Two replicas of the portal, and two workers that have room for everybody."""
    directory = tmp_path_factory.mktemp("portal")
    with Sandbox.up(
        "portal",
        directory=directory,
        workers=2,
        portals=len(PORTALS),
        audit=True,
        worker_args=[["--boot-seconds=8-15"]],
        tied=True,
    ) as made:
        yield made


@dataclass
class User:
    """Somebody who asks the replicas in turn, and remembers what the streams told.

    Attributes:
        lines: The id, kind and text of each event, of all streams of this user.
        cuts: Streams that broke off before the end of the operation.
    """

    name: str
    token: str
    urls: list[str]
    turn: Iterator[int]
    lines: list[tuple[str, str, str]] = field(default_factory=list)
    cuts: int = 0

    @property
    def path(self) -> str:
        return f"{ROUTES}/labs/{self.name}"

    @property
    def last_id(self) -> str:
        return next((each[0] for each in reversed(self.lines) if each[0]), "")

    def ask(self, method: str, path: str, body: object = None, token: str = "") -> int:
        """Return the status of an answer; 0 if there is none."""
        try:
            connection, answer = self._send(method, path, body, token or self.token)
        except (OSError, http.client.HTTPException):
            return 0
        connection.close()
        return answer.status

    def follow(self) -> tuple[int, str]:
        """Follow the stream of the lab; return its status, 0 if there is none, and the kind of its last event."""
        try:
            connection, answer = self._send("GET", f"{self.path}/events", None, self.token)
        except (OSError, http.client.HTTPException):
            return 0, ""
        try:
            if answer.status == 200:
                self._read(answer)
        except (OSError, http.client.HTTPException):
            pass
        finally:
            connection.close()
        last = self.lines[-1][1] if self.lines and answer.status == 200 else ""
        self.cuts += answer.status == 200 and last not in ENDS
        return answer.status, last

    def _read(self, answer: http.client.HTTPResponse) -> None:
        event: dict[str, str] = {}
        for raw in answer:
            name, _, text = raw.decode().rstrip("\n").partition(":")
            if name:
                event[name] = text.strip()
            elif event.get("event"):  # an empty line ends an event
                self.lines.append((event.get("id", ""), event["event"], event.get("data", "")))
                event = {}

    def _send(
        self, method: str, path: str, body: object, token: str
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        host = self.urls[next(self.turn) % len(self.urls)].removeprefix("http://")
        connection = http.client.HTTPConnection(host, timeout=30)  # a comment comes each 15 s
        headers = {"Authorization": f"Bearer {token}"}
        if path.endswith("/events") and self.last_id:
            headers["Last-Event-ID"] = self.last_id
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            return connection, connection.getresponse()
        except BaseException:
            connection.close()
            raise


class School:
    """The users, and how they ask."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.urls = [cluster.sandbox.process(name).url for name in PORTALS]
        self.hub = self._token(NAMESPACE, HUB)
        self.users = [self._user(number) for number in range(USERS)]
        self.over = threading.Event()

    def have(self, user: User) -> str:
        """Ask until there is a lab, and follow its stream to the end; return the kind of its last event.

        A request that got no answer, because its replica died, may have been cleared away: then it is asked again.
        """
        while not self.over.is_set():
            asked = user.ask("POST", f"{user.path}/create", WISH)
            if asked in {303, 409}:
                status, last = user.follow()
                while status != 404 and last not in ENDS and not self.over.is_set():
                    self.over.wait(0.2)
                    status, last = user.follow()
                if last in ENDS:
                    pod = self.sure(lambda: self.cluster.pod(f"nublado-{user.name}", f"nb-{user.name}"))
                    assert is_ready(pod) == (last == "complete"), (user.name, last, pod)
                    if asked == 303 or last == "complete":
                        return last
                    assert user.lines[-2][1:] == ("error", "The lab was deleted."), user.lines
            self.over.wait(0.3)
        return ""

    def give_back(self, user: User) -> str:
        """Ask the portal, as a hub does, until the lab is to be deleted; follow the stream until it is gone."""
        created, seen = user.last_id.partition("~")[0], len(user.lines)
        while not self.over.is_set():
            if user.ask("DELETE", user.path, token=self.hub) == 202:
                break
            self.over.wait(0.3)
        while not self.over.is_set():
            status, last = user.follow()
            told = [each for each in user.lines[seen:] if each[0].partition("~")[0] not in {created, ""}]
            if status == 404 or (told and last in ENDS):
                left = self.sure(lambda: self.cluster.get(f"/api/v1/namespaces/nublado-{user.name}"))
                assert left is None, (user.name, status, last, left)
                return last or "gone"
            self.over.wait(0.2)
        return ""

    def sure(self, look: Callable[[], Any]) -> Any:
        """Return what the API server answers, as soon as it does."""
        while True:
            try:
                return look()
            except (OSError, http.client.HTTPException, Refused):  # it is away, or has just come back
                time.sleep(0.3)

    def all_at_once(self, act: Callable[[User], str], within_s: float, harm: Callable[[], None]) -> Counter[str]:
        """Have all users act at once while harm is done; return how their streams ended."""
        self.over.clear()
        deadline = time.monotonic() + within_s
        with ThreadPoolExecutor(USERS) as pool:
            acts = {user.name: pool.submit(act, user) for user in self.users}
            try:
                harm()
                until(lambda: not self._late(acts), deadline - time.monotonic(), "somebody waits")
            except AssertionError:
                raise AssertionError(f"not within {within_s:g} s: {self._late(acts)}") from None
            finally:
                self.over.set()
        return Counter(each.result() for each in acts.values())

    def _late(self, acts: dict[str, Any]) -> dict[str, object]:
        """Return the last events of those who wait."""
        late = [user for user in self.users if not acts[user.name].done()]
        return {user.name: user.lines[-3:] for user in late}

    def _user(self, number: int) -> User:
        name = f"user-{number}"
        path = f"/api/v1/namespaces/{LEARNERS}/serviceaccounts"
        self.cluster.request("POST", path, {"metadata": {"name": name}})
        return User(name, self._token(LEARNERS, name), self.urls, itertools.count(number))

    def _token(self, namespace: str, account: str) -> str:
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        return str(self.cluster.request("POST", path, {"spec": {"expirationSeconds": 3600}})["status"]["token"])


class Harm:
    """Kills programs of the sandbox, and starts them again."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    def kill(self, process: str) -> None:
        self._sandbox.kill(process)
        time.sleep(DOWN_S)
        self._sandbox.start(process)

    def portals(self) -> None:
        """Kill one replica after the other; the second one while the first may still be starting."""
        for name in PORTALS:
            self.kill(name)
            time.sleep(DOWN_S)

    def api_server(self) -> None:
        """Have the API server hang, and die; it is started again as after any crash."""
        self._sandbox.kill("kube-apiserver", signal.SIGSTOP)
        time.sleep(AWAY_S)
        self._sandbox.kill("kube-apiserver", signal.SIGCONT)
        time.sleep(DOWN_S)
        self._sandbox.kill("kube-apiserver")


def pods_made(sandbox: Sandbox) -> Counter[str]:
    """Count the Pods that the portal's account has made, by namespace."""
    made = Counter[str]()
    for line in sandbox.layout.audit_log.read_bytes().splitlines():
        if b'"create"' not in line or b"vkprovider-portal" not in line:
            continue
        event = json.loads(line)
        of = event.get("objectRef", {})
        done = event["stage"] == "ResponseComplete" and event.get("responseStatus", {}).get("code") == 201
        if done and of.get("resource") == "pods" and event["user"]["username"].endswith(":vkprovider-portal"):
            made[of["namespace"]] += 1
    return made


def told_once(user: User) -> None:
    """Assert that no event was sent twice to a user, and that progress never went back in one operation."""
    ids = Counter(each[0] for each in user.lines if each[0])
    assert not {each for each, times in ids.items() if times > 1}, user.lines
    progress: dict[str, list[int]] = {}
    for where, kind, text in user.lines:
        if kind == "progress":
            progress.setdefault(where.partition("~")[0], []).append(int(text))
    assert all(each == sorted(each) for each in progress.values()), user.lines


@pytest.mark.timeout(480)
def test_fifty_users_have_one_lab_each_and_leave_nothing_while_everything_dies(cluster: Cluster) -> None:
    body = definition("portal-lab")
    body["metadata"]["labels"] = {"vkprovider.io/family": "portal", "vkprovider.io/size": "small"}
    cluster.define(body)
    school, harm = School(cluster), Harm(cluster.sandbox)
    first = school.users[0]
    until(lambda: first.ask("GET", f"{ROUTES}/labs", token=school.hub) == 200, 45, "the portal does not answer")

    def while_made() -> None:
        time.sleep(0.5)  # some are asked for, few are made
        harm.api_server()
        harm.portals()
        harm.api_server()
        harm.kill("provider-1")
        harm.portals()

    began = time.monotonic()
    ended = school.all_at_once(school.have, MADE_S, while_made)
    made_s = time.monotonic() - began
    failed = [user.lines[-3:] for user in school.users if user.lines[-1][1] == "failed"]
    assert ended == {"complete": USERS}, failed
    namespaces = {f"nublado-{user.name}" for user in school.users}
    pods = cluster.items(f"/api/v1/pods{MARKED}")
    assert Counter(pod["metadata"]["namespace"] for pod in pods) == Counter(namespaces)
    assert all(is_ready(pod) for pod in pods)
    assert pods_made(cluster.sandbox) == Counter(namespaces)
    imports, _ = Replicas(cluster).seen_by_cml()
    assert imports == Counter(pod["metadata"]["uid"] for pod in pods)
    cuts = sum(user.cuts for user in school.users)
    assert cuts, "no stream was cut"

    def while_deleted() -> None:
        time.sleep(0.3)
        harm.portals()
        harm.api_server()

    began = time.monotonic()
    ended = school.all_at_once(school.give_back, GONE_S, while_deleted)
    gone_s = time.monotonic() - began
    assert set(ended) <= {"complete", "gone"}, ended
    assert ended.total() == USERS
    for user in school.users:
        told_once(user)
    assert cluster.items(f"/api/v1/namespaces{MARKED}") == []
    until(lambda: not any(worker.labs() for worker in cluster.workers), 45, "a CML has labs")
    locks = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases?labelSelector=vkprovider.io/userlab-lock"
    until(lambda: not cluster.items(locks), 60, "locks are left")
    assert pods_made(cluster.sandbox) == Counter(namespaces)
    print(  # noqa: T201 (the figures)
        f"{USERS} labs made in {made_s:.0f} s and deleted in {gone_s:.0f} s; {cuts} streams were cut while they were "
        f"made; deletions told {dict(ended)}"
    )
