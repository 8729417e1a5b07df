"""A lablet and its session, from `kubectl apply` to graded, as CML, the LDS and Kubernetes saw it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from tests.cluster.test_lablets_life import done, made
from tests.conftest import SETTINGS
from tests.support.browser import browser, press
from tests.support.cluster import Cluster, condition, container, is_ready, waiting_reason
from tests.support.extra import SYSTEM, secret
from tests.support.lds import LdsSide
from tests.support.plugin import succeeded
from tests.support.topologies import definition, pod, topology
from tests.support.waiting import throughout, until
from vkpsandbox import Sandbox

EXAMPLES = Path(__file__).parents[2] / "manifests" / "examples"
NOTE = "vkprovider.io/"
WORKER = ("--boot-seconds=0.3-1",)
CHECKS = [{"item": "task-1", "matches": "router ospf"}]
"""What a learner must answer to pass."""


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """One worker, an LDS that grades by what the learner answered, two replicas that its events go to in turn."""
    directory = tmp_path_factory.mktemp("sandbox")
    checks = tmp_path_factory.mktemp("grader") / "checks.json"
    checks.write_text(json.dumps(CHECKS))
    made = Sandbox.up(
        "sessions",
        directory=directory,
        workers=1,
        replicas=2,
        lds=True,
        lds_args=["--grade=checks", f"--grade-checks={checks}", "--grade-seconds=1"],
        provider_env=SETTINGS,
        worker_args=[WORKER],
        tied=True,
    )
    with made:
        yield made


def state(found: dict[str, Any] | None) -> str:
    return str((found or {}).get("metadata", {}).get("annotations", {}).get(f"{NOTE}state", ""))


def learner(name: str, definition_name: str, username: str = "alice", **more: Any) -> dict[str, Any]:
    """A lablet with a user; `notes`: further annotations, the rest goes to its spec."""
    notes = more.pop("notes", {})
    item = pod(name, definition_name, **more)
    item["metadata"]["annotations"] = {f"{NOTE}username": username} | {f"{NOTE}{k}": v for k, v in notes.items()}
    return item


def wait_state(cluster: Cluster, namespace: str, name: str, wanted: str, within_s: float = 90) -> dict[str, Any]:
    def there() -> dict[str, Any]:
        now = made(cluster, namespace, name)
        assert state(now) == wanted, (state(now), now["status"])
        return now

    return until(there, within_s)


def session_of(lds: LdsSide, found: dict[str, Any]) -> dict[str, Any]:
    """The session of a Pod: there is one, and the Pod names it."""
    session = lds.session_of(found["metadata"]["uid"])
    assert session is not None
    assert found["metadata"]["annotations"][f"{NOTE}lds-session-id"] == session["id"]
    return session


def port_of(found: dict[str, Any], name: str) -> int:
    """The worker's port of a name."""
    return int(json.loads(found["metadata"]["annotations"][f"{NOTE}port-mappings"])[name]["allocated_port"])


def conditions(found: dict[str, Any]) -> dict[str, str]:
    return {
        entry["type"].removeprefix(NOTE): entry["status"]
        for entry in found["status"]["conditions"]
        if entry["type"] != "PodScheduled"
    }


def told(cluster: Cluster, namespace: str, name: str) -> dict[str, str]:
    """Reason and message of the Events of a Pod."""
    return {event["reason"]: event["message"] for event in cluster.events(namespace, name)}


def claims(cluster: Cluster) -> str:
    path = f"/api/v1/namespaces/{SYSTEM}/configmaps/{cluster.workers[0].name}-port-allocations"
    return "".join(((cluster.get(path) or {}).get("data") or {}).values())


def wait_ended(cluster: Cluster, lds: LdsSide, namespace: str, name: str, phase: str) -> dict[str, Any]:
    """Wait for the end; by then the lab is gone, the session archived and the ports are free."""
    now = until(lambda: (p := made(cluster, namespace, name))["status"]["phase"] == phase and p, 90)
    assert now
    uid = now["metadata"]["uid"]
    assert cluster.lab_of(now) is None
    assert lds.session_of(uid) is None
    until(lambda: uid not in claims(cluster), 30, "its ports are held")
    return now


@pytest.fixture
def netlab(cluster: Cluster) -> None:
    """The example's definition."""
    cluster.define(yaml.safe_load((EXAMPLES / "netlab.yaml").read_text()))


@pytest.fixture
def kind(cluster: Cluster, namespace: str) -> str:
    """A definition of one host with a console."""
    name = f"one-{namespace[-5:]}"
    cluster.define(definition(name, topology({"h0": "alpine"}, {"h0": ["serial:5001"]})))
    return name


# ------------------------------------------------------------------------------------------ the whole story


def log_in(page: Chrome, url: str) -> list[list[str]]:
    """Log in as the learner; give the table of devices."""
    page.get(url)
    assert page.find_element(By.ID, "username").text == "alice"
    press(page, "login")
    rows = page.find_elements(By.CSS_SELECTOR, "#devices tbody tr")
    return [[cell.text for cell in row.find_elements(By.TAG_NAME, "td")] for row in rows]


def work(page: Chrome, answer: str) -> None:
    """Answer the task, and finish."""
    page.find_element(By.NAME, "task-1").send_keys(answer)
    press(page, "answers")
    press(page, "finish")
    assert page.find_element(By.ID, "state").text == "USER_FINISHED"


@pytest.mark.usefixtures("netlab")
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("answer", "phase"), [("router ospf 1", "Succeeded"), ("I do not know", "Failed")])
def test_job_ends_as_its_learner_did(cluster: Cluster, lds: LdsSide, namespace: str, answer: str, phase: str) -> None:
    """R000-012 to R000-018, R000-020, R000-023 to R000-025: apply, READY, login, RUNNING, collect, grade, end."""
    worker, passes = cluster.workers[0], phase == "Succeeded"
    since = worker.last_request()
    cluster.apply(yaml.safe_load((EXAMPLES / "exam.yaml").read_text()), namespace=namespace)
    [found] = cluster.wait_ready(namespace, 1)
    name, uid = found["metadata"]["name"], found["metadata"]["uid"]
    session = session_of(lds, found)
    assert (session["state"], session["username"]) == ("PENDING", "alice")
    notes = found["metadata"]["annotations"]
    assert (notes[f"{NOTE}state"], notes[f"{NOTE}lds-base-url"]) == ("READY", lds.lds.url)
    assert notes[f"{NOTE}lds-login-url"] == f"{lds.lds.url}/login", "without its token"
    assert conditions(found) == {
        "Initialized": "True",
        "ContainersReady": "True",
        "Ready": "True",
        "LabImported": "True",
        "LabConverged": "True",
        "SessionReady": "True",
        "SessionStarted": "False",
    } | ({"PortsOpen": conditions(found)["PortsOpen"]} if "PortsOpen" in conditions(found) else {})
    throughout(lambda: state(made(cluster, namespace, name)) == "READY", 2)  # nothing but the login moves it on

    url = lds.api("GET", f"/sessions/{session['id']}/login_url")["login_url"]
    with browser() as page:
        [row] = log_in(page, url)
        port, address = port_of(found, "h0_pat80"), worker.worker.address
        assert row[:5] == ["h0", "http", address, str(port), f"http://{address}:{port}"], "CML opens the pat port"
        now = wait_state(cluster, namespace, name, "RUNNING")
        assert (conditions(now)["SessionStarted"], is_ready(now)) == ("True", True)
        work(page, answer)
    ended = wait_ended(cluster, lds, namespace, name, phase)
    assert lds.sessions()[-1]["state"] == "ARCHIVED"
    last = container(ended)["state"]["terminated"]
    assert (last["exitCode"], last["reason"]) == ((0, "Passed") if passes else (1, "NotPassed"))
    assert ("score 1 of 1" if passes else "score 0 of 1") in last["message"]
    assert state(ended) == ("TERMINATED" if passes else "FAILED")
    assert {key: conditions(ended)[key] for key in ("Ready", "LabImported", "SessionReady", "SessionStarted")} == {
        "Ready": "False",
        "LabImported": "False",
        "SessionReady": "False",
        "SessionStarted": "True",
    }
    assert done(worker, since) == ["import", "start", "extract", "stop", "wipe", "DELETE"]

    verdict = "Passed" if passes else "NotPassed"
    story = ["Created", "Started", "SessionReady", "Ready", "SessionStarted", "SessionEnded", "Collected", "Graded"]
    story += [verdict, "SessionArchived"]
    until(lambda: set(story) <= told(cluster, namespace, name).keys(), 30, f"Events {told(cluster, namespace, name)}")
    assert "GraderUnavailable" not in told(cluster, namespace, name), "it only took its time"
    described = cluster.kubectl("describe", "pod", name, f"--namespace={namespace}").stdout
    assert [word for word in story if word not in described] == []
    assert "kept the configurations of 2 devices" in described
    assert url.partition("?")[2] not in described, "the login's token is a secret"
    left = json.loads(succeeded(cluster, "configs", uid, "-n", namespace, "-o", "json"))
    assert (left["configs"]["h0"], left["responses"][0]["answer"]) == ("hostname h0", answer)
    job = f"/apis/batch/v1/namespaces/{namespace}/jobs/exam-alice"
    kind = "Complete" if passes else "Failed"
    until(lambda: condition(cluster.get(job), kind).get("status") == "True", 45)
    assert len(cluster.pods(namespace)) == 1, "backoffLimit 0: nobody gets a second try"


# ------------------------------------------------------------------------------------------ the reconcile table


def test_passes_without_change_do_nothing(cluster: Cluster, lds: LdsSide, namespace: str, kind: str) -> None:
    """R000-014 to R000-016, R000-022: READY and RUNNING are converged; nothing is made twice."""
    worker = cluster.workers[0]
    since, asked = worker.last_request(), max((one["number"] for one in lds.access_log()), default=0)
    cluster.apply(learner("calm", kind), namespace=namespace)
    ready = wait_state(cluster, namespace, "calm", "READY")
    session = session_of(lds, ready)
    before = claims(cluster)

    def writes() -> list[str]:
        entries = [e for e in lds.access_log() if e["method"] != "GET" and e["path"].startswith("/api/v1/sessions")]
        return [f"{e['method']} {e['path'].replace(session['id'], 'S')}" for e in entries if e["number"] > asked]

    made_it = ["POST /api/v1/sessions", "PUT /api/v1/sessions/S/devices"]
    assert writes() == made_it
    throughout(lambda: state(made(cluster, namespace, "calm")) == "READY", 6)  # the loop comes by every 5 s
    lds.act(session["id"], "log-in")
    wait_state(cluster, namespace, "calm", "RUNNING")
    throughout(lambda: state(made(cluster, namespace, "calm")) == "RUNNING", 6)
    assert writes() == made_it
    assert done(worker, since) == ["import", "start"]
    assert json.loads(claims(cluster))["portClaims"] == json.loads(before)["portClaims"]


def test_no_session_without_a_user_or_where_the_definition_wants_none(
    cluster: Cluster, lds: LdsSide, namespace: str, kind: str
) -> None:
    off = f"off-{namespace[-5:]}"
    cluster.define(definition(off, lds={"enabled": False}))
    before = len(lds.sessions())
    cluster.apply(pod("warm", kind), learner("plain", off), namespace=namespace)
    cluster.wait_ready(namespace, 2)
    assert len(lds.sessions()) == before
    assert "SessionReady" not in conditions(made(cluster, namespace, "warm"))
    succeeded(cluster, "assign", "warm", "bob", "-n", namespace)
    now = until(lambda: conditions(p := made(cluster, namespace, "warm")).get("SessionReady") == "True" and p, 45)
    assert now
    assert session_of(lds, now)["username"] == "bob"
    assert is_ready(now)
    assert len(lds.sessions()) == before + 1


def test_stopped_lablet_keeps_its_session(cluster: Cluster, lds: LdsSide, namespace: str, kind: str) -> None:
    """R000-019, C33: STOPPED is on request, and RUNNING follows it."""
    worker = cluster.workers[0]
    cluster.apply(learner("pausing", kind), namespace=namespace)
    session = session_of(lds, wait_state(cluster, namespace, "pausing", "READY"))
    lds.act(session["id"], "log-in")
    wait_state(cluster, namespace, "pausing", "RUNNING")
    since = worker.last_request()
    succeeded(cluster, "stop", "pausing", "-n", namespace, "--wait")
    stopped = wait_state(cluster, namespace, "pausing", "STOPPED")
    assert (waiting_reason(stopped), is_ready(stopped)) == ("LabStopped", False)
    succeeded(cluster, "start", "pausing", "-n", namespace, "--wait")
    again = wait_state(cluster, namespace, "pausing", "RUNNING")
    assert session_of(lds, again)["id"] == session["id"]
    assert done(worker, since) == ["extract", "stop", "start"]


def test_deleted_lablet_archives_its_session_then_removes_the_lab(
    cluster: Cluster, lds: LdsSide, namespace: str, kind: str
) -> None:
    """R000-020, C13: archived, stopped, wiped, deleted, in this order."""
    worker = cluster.workers[0]
    cluster.apply(learner("gone", kind), namespace=namespace)
    session = session_of(lds, wait_state(cluster, namespace, "gone", "READY"))
    since = worker.last_request()
    cluster.kubectl("delete", "pod", "gone", f"--namespace={namespace}", "--timeout=20s")
    [archive] = [e for e in lds.access_log() if e["path"] == f"/api/v1/sessions/{session['id']}/archive"]
    assert done(worker, since) == ["extract", "stop", "wipe", "DELETE"]
    stop = next(e for e in worker.access_log(since) if e["path"].endswith("/stop"))
    assert archive["arrived_unix_s"] < stop["arrived_unix_s"]
    assert [one["state"] for one in lds.sessions() if one["id"] == session["id"]] == ["ARCHIVED"]


def test_timeslot_ends_by_itself(cluster: Cluster, lds: LdsSide, namespace: str, kind: str) -> None:
    """Collected, graded, ended, though nobody logged in."""
    cluster.apply(learner("brief", kind, restartPolicy="Never"), namespace=namespace)
    wait_state(cluster, namespace, "brief", "READY")
    cluster.kubectl("annotate", "pod", "brief", f"{NOTE}timeslot-end=2026-01-01T00:00:00Z", f"--namespace={namespace}")
    ended = wait_ended(cluster, lds, namespace, "brief", "Failed")
    assert container(ended)["state"]["terminated"]["reason"] == "NotPassed"
    assert {"TimeslotEnded", "Collected", "Graded"} <= told(cluster, namespace, "brief").keys()


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("status", "lacking"), [(500, {"h0", "h1"}), (503, set())], ids=["its own", "passing"])
def test_collecting_goes_on_when_one_device_cannot_be_read(
    cluster: Cluster, lds: LdsSide, namespace: str, status: int, lacking: set[str]
) -> None:
    """R000-017, R000-018: one failing device stops nobody; it is asked again where CML was away for a moment."""
    name = f"two-{namespace[-5:]}"
    cluster.define(definition(name, topology({"h0": "alpine", "h1": "alpine"}, {"h0": ["serial:5001"]})))
    cluster.apply(learner("partly", name, restartPolicy="Never"), namespace=namespace)
    ready = wait_state(cluster, namespace, "partly", "READY")
    worker = cluster.workers[0]
    worker.fault("status", "extract_configuration$", status=status, count=1)
    lds.act(session_of(lds, ready)["id"], "log-in")
    lds.act(session_of(lds, ready)["id"], "finish")
    wait_ended(cluster, lds, namespace, "partly", "Failed")
    assert worker.admin("GET", "/faults") == [], "the fault was met"
    notes = told(cluster, namespace, "partly")
    whole = "kept the configurations of 2 devices"
    assert notes["Collected"] in ({f"kept the configurations of 1 devices; none of {h}" for h in lacking} or {whole})
    assert ("NotKept" in notes) == bool(lacking)


# ------------------------------------------------------------------------------------------ devices


def test_learner_gets_visible_devices_with_credentials(cluster: Cluster, lds: LdsSide, namespace: str) -> None:
    """R000-106 to R000-108, C35: visible ones once, by the primary access, the Secret's credentials."""
    name = f"seen-{namespace[-5:]}"
    devices = {"workstation": "desktop", "R1": "alpine", "hidden one": "alpine", "untagged": "alpine"}
    tags = {"workstation": ["serial:5065", "vnc:5066"], "R1": ["serial:5067"], "hidden one": ["serial:5068", "hidden"]}
    account = {"username": "cisco", "password": "gehe1m", "r1.password": "ei9en"}
    cluster.define(definition(name, topology(devices, tags), deviceSecretName=name))
    cluster.apply(learner("waits", name), namespace=namespace)
    until(lambda: waiting_reason(made(cluster, namespace, "waits")) == "DeviceSecretInvalid", 60)
    cluster.apply(secret(name, account), namespace=SYSTEM)
    cluster.delete_later("secret", name, f"--namespace={SYSTEM}")
    now = wait_state(cluster, namespace, "waits", "READY")
    address = cluster.workers[0].worker.address
    vnc, serial = port_of(now, "workstation_vnc"), port_of(now, "R1_serial")
    assert session_of(lds, now)["devices"] == [
        {
            "name": "workstation",
            "protocol": "vnc",
            "host": address,
            "port": vnc,
            "uri": f"vnc://{address}:{vnc}",
            "username": "cisco",
            "password": "gehe1m",
        },
        {
            "name": "R1",
            "protocol": "telnet",
            "host": address,
            "port": serial,
            "uri": f"telnet://{address}:{serial}",
            "username": "cisco",
            "password": "ei9en",
        },
    ]
    shown = cluster.kubectl("get", "pods,events,configmaps", "-A", "-o", "json").stdout
    logs = "".join(cluster.sandbox.layout.log(f"provider-{n}").read_text() for n in (1, 2))
    for password in ("gehe1m", "ei9en"):
        assert password not in shown
        assert password not in logs


# ------------------------------------------------------------------------------------------ recovery


@pytest.mark.timeout(300)
def test_lab_that_stops_in_a_session_is_started_as_it_was(
    cluster: Cluster, lds: LdsSide, namespace: str, kind: str
) -> None:
    """R000-021, C48: three times, then somebody must look; session and user are kept, also through a reset."""
    worker = cluster.workers[0]
    since = worker.last_request()
    cluster.apply(learner("worked", kind, restartPolicy="Never"), namespace=namespace)
    ready = wait_state(cluster, namespace, "worked", "READY")
    session, lab = session_of(lds, ready), cluster.lab_of(ready)
    assert lab
    lds.act(session["id"], "log-in")
    wait_state(cluster, namespace, "worked", "RUNNING")
    for times in (1, 2, 3):
        worker.crash(lab["id"], "h0")
        until(lambda n=times: container(made(cluster, namespace, "worked"))["restartCount"] == n, 90)  # type: ignore[misc]
        wait_state(cluster, namespace, "worked", "RUNNING")
        assert done(worker, since) == ["import", "start"], "neither wiped nor imported again"
    worker.crash(lab["id"], "h0")
    until(lambda: waiting_reason(made(cluster, namespace, "worked")) == "NeedsAttention", 45)
    assert session_of(lds, made(cluster, namespace, "worked"))["id"] == session["id"]
    succeeded(cluster, "reset", "worked", "--yes", "-n", namespace)
    until(lambda: done(worker, since) == ["import", "start", "wipe", "start"], 60)
    now = wait_state(cluster, namespace, "worked", "RUNNING")
    assert now["metadata"]["annotations"][f"{NOTE}username"] == "alice"
    assert session_of(lds, now)["id"] == session["id"]
    assert (cluster.lab_of(now) or {})["id"] == lab["id"]
    assert len([one for one in lds.sessions() if one["client_key"] == ready["metadata"]["uid"]]) == 1


@pytest.mark.timeout(300)
def test_session_that_no_lablet_has_is_archived(cluster: Cluster, lds: LdsSide, namespace: str, kind: str) -> None:
    """With our mark, when it is older than a minute; those of others never."""
    cluster.apply(learner("has", kind), namespace=namespace)
    mine = session_of(lds, wait_state(cluster, namespace, "has", "READY"))
    body = {
        "username": "eve",
        "timeslot_start": "2026-01-01T00:00:00Z",
        "timeslot_end": "2036-01-01T00:00:00Z",
        "form_qualified_name": kind,
    }
    stray = lds.api("POST", "/sessions", body | {"owner": mine["owner"], "client_key": "nobody"})["id"]
    foreign = [
        lds.api("POST", "/sessions", body)["id"],
        lds.api("POST", "/sessions", body | {"owner": "somebody-else"})["id"],
    ]

    def states() -> dict[str, str]:
        return {one["id"]: one["state"] for one in lds.sessions()}

    until(lambda: states()[stray] == "ARCHIVED", 360)
    assert [states()[one] for one in (mine["id"], *foreign)] == ["PENDING"] * 3
    throughout(lambda: [states()[one] for one in (mine["id"], *foreign)] == ["PENDING"] * 3, 5)
    for one in foreign:
        lds.api("POST", f"/sessions/{one}/archive")


# ------------------------------------------------------------------------------------------ events


def test_repeated_and_late_events_change_nothing(cluster: Cluster, lds: LdsSide, namespace: str, kind: str) -> None:
    """R000-024, R000-025: twice, the end before the beginning, at any replica; forged ones are refused."""
    worker = cluster.workers[0]
    cluster.apply(learner("mixed", kind, restartPolicy="Never"), namespace=namespace)
    ready = wait_state(cluster, namespace, "mixed", "READY")
    session, since = session_of(lds, ready), worker.last_request()
    lds.event_fault("duplicate", copies=3)
    lds.event_fault("forge", "started", count=1)
    lds.event_fault("reorder", "started", delay_s=3, count=1)
    lds.act(session["id"], "log-in")
    lds.act(session["id"], "finish")
    wait_ended(cluster, lds, namespace, "mixed", "Failed")
    until(lambda: not lds.admin("GET", "/undelivered"), 60)
    sent = [one for one in lds.deliveries() if one["session"] == session["id"]]
    assert len({one["target"] for one in sent}) == 2, "both replicas were told"
    good = [one["type"] for one in sent if not one.get("forged")]
    assert {kind: good.count(kind) for kind in good} == {"session.started": 4, "session.ended": 4}
    assert good[0] == "session.ended", "the end came first"
    assert {one["status"] for one in sent if one.get("forged")} <= {401, 403}
    assert done(worker, since) == ["extract", "stop", "wipe", "DELETE"]
    counts = {event["reason"]: event.get("count", 1) for event in cluster.events(namespace, "mixed")}
    assert [counts[word] for word in ("SessionStarted", "SessionEnded", "Collected", "Graded")] == [1] * 4
