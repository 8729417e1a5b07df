"""The Job controller, kubectl and a browser with a lablet and its session, from `kubectl apply` to graded."""

import json
from typing import Any

import pytest
import yaml
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from tests.cluster.sessions import NOTE, learner, session_of, state, told, wait_state
from tests.cluster.sessions.conftest import Strays
from tests.cluster.test_lablets_life import done, made
from tests.support import docs
from tests.support.browser import browser, press
from tests.support.cluster import Cluster, condition, container, is_ready, waiting_reason
from tests.support.extra import LOGINS, SYSTEM, secret
from tests.support.lds import LdsSide
from tests.support.plugin import succeeded
from tests.support.topologies import definition, pod, topology
from tests.support.waiting import throughout, until

pytestmark = pytest.mark.tunnelled

EXAMPLES = docs.ROOT / "manifests" / "examples"


def port_of(found: dict[str, Any], name: str) -> int:
    """The worker's port of a name."""
    return int(json.loads(found["metadata"]["annotations"][f"{NOTE}port-mappings"])[name]["allocated_port"])


def conditions(found: dict[str, Any]) -> dict[str, str]:
    return {
        entry["type"].removeprefix(NOTE): entry["status"]
        for entry in found["status"]["conditions"]
        if entry["type"] != "PodScheduled"
    }


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
def test_job_ends_as_its_learner_did(cluster: Cluster, lds: LdsSide, namespace: str) -> None:
    """R000-012 to R000-018, R000-020, R000-023 to R000-025: apply, READY, login, RUNNING, collect, grade, end."""
    worker, answer = cluster.workers[0], "router ospf 1"
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
    [device] = session["devices"]
    port, address = port_of(found, "h0_pat80"), worker.worker.address
    assert (device["name"], device["uri"]) == ("h0", f"http://{address}:{port}"), "CML opens the pat port"
    lds.act(session["id"], "log-in")
    now = wait_state(cluster, namespace, name, "RUNNING")
    assert (conditions(now)["SessionStarted"], is_ready(now)) == ("True", True)
    lds.act(session["id"], "answer", {"item": "task-1", "answer": answer})
    lds.act(session["id"], "finish")
    ended = wait_ended(cluster, lds, namespace, name, "Succeeded")
    assert session["id"] in {one["id"] for one in lds.sessions() if one["state"] == "ARCHIVED"}
    last = container(ended)["state"]["terminated"]
    assert (last["exitCode"], last["reason"]) == (0, "Passed")
    assert "score 1 of 1" in last["message"]
    assert state(ended) == "TERMINATED"
    assert {key: conditions(ended)[key] for key in ("Ready", "LabImported", "SessionReady", "SessionStarted")} == {
        "Ready": "False",
        "LabImported": "False",
        "SessionReady": "False",
        "SessionStarted": "True",
    }
    assert done(worker, since) == ["import", "start", "extract", "stop", "wipe", "DELETE"]

    story = ["Created", "Started", "SessionReady", "Ready", "SessionStarted", "SessionEnded", "Collected", "Graded"]
    story += ["Passed", "SessionArchived"]
    until(lambda: set(story) <= told(cluster, namespace, name).keys(), 30, f"Events {told(cluster, namespace, name)}")
    assert "GraderUnavailable" not in told(cluster, namespace, name), "it only took its time"
    described = cluster.kubectl("describe", "pod", name, f"--namespace={namespace}").stdout
    assert [word for word in story if word not in described] == []
    assert "kept the configurations of 2 devices" in described
    assert url.partition("?")[2] not in described, "the login's token is a secret"
    left = json.loads(succeeded(cluster, "configs", uid, "-n", namespace, "-o", "json"))
    assert (left["configs"]["h0"], left["responses"][0]["answer"]) == ("hostname h0", answer)
    job = f"/apis/batch/v1/namespaces/{namespace}/jobs/exam-alice"
    until(lambda: condition(cluster.get(job), "Complete").get("status") == "True", 45)


@pytest.mark.usefixtures("netlab")
@pytest.mark.timeout(300)
def test_learner_logs_in_works_and_finishes_in_a_browser(cluster: Cluster, lds: LdsSide, namespace: str) -> None:
    """R000-017, R000-018: the login URL opens the page of the lab's devices; what is done there moves the lablet on."""
    with browser() as page:
        cluster.apply(learner("browses", "netlab", restartPolicy="Never"), namespace=namespace)
        found = wait_state(cluster, namespace, "browses", "READY")
        session = session_of(lds, found)
        [row] = log_in(page, lds.api("GET", f"/sessions/{session['id']}/login_url")["login_url"])
        port, address = port_of(found, "h0_pat80"), cluster.workers[0].worker.address
        assert row[:5] == ["h0", "http", address, str(port), f"http://{address}:{port}"]
        wait_state(cluster, namespace, "browses", "RUNNING")
        work(page, "router ospf 1")
    ended = wait_ended(cluster, lds, namespace, "browses", "Succeeded")
    assert "score 1 of 1" in container(ended)["state"]["terminated"]["message"]


# ------------------------------------------------------------------------------------------ the reconcile table


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


def test_timeslot_ends_by_itself(cluster: Cluster, lds: LdsSide, namespace: str, kind: str) -> None:
    """Collected, graded, ended, though nobody logged in; with its only Pod the Job has failed."""
    template = learner("brief", kind, restartPolicy="Never")
    del template["apiVersion"], template["kind"], template["metadata"]["name"]
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "brief"},
        "spec": {"backoffLimit": 0, "template": template},
    }
    cluster.apply(job, namespace=namespace)
    [found] = cluster.wait_ready(namespace, 1)
    name = found["metadata"]["name"]
    cluster.kubectl("annotate", "pod", name, f"{NOTE}timeslot-end=2026-01-01T00:00:00Z", f"--namespace={namespace}")
    ended = wait_ended(cluster, lds, namespace, name, "Failed")
    last = container(ended)["state"]["terminated"]
    assert (last["exitCode"], last["reason"], state(ended)) == (1, "NotPassed", "FAILED")
    assert "score 0 of 1" in last["message"]
    events = {"TimeslotEnded", "Collected", "Graded", "NotPassed", "SessionArchived"}
    assert events <= told(cluster, namespace, name).keys()
    path = f"/apis/batch/v1/namespaces/{namespace}/jobs/brief"
    until(lambda: condition(cluster.get(path), "Failed").get("status") == "True", 45)
    assert len(cluster.pods(namespace)) == 1, "backoffLimit 0: nobody gets a second try"


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
    cluster.apply(secret(name, account))
    cluster.delete_later("secret", name, f"--namespace={LOGINS}")
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


# ------------------------------------------------------------------------------------------ events


def test_repeated_and_late_events_change_nothing(cluster: Cluster, lds: LdsSide, namespace: str, kind: str) -> None:
    """R000-024, R000-025: twice, the end before the beginning, at any replica; forged ones are refused."""
    worker = cluster.workers[0]
    cluster.apply(learner("mixed", kind, restartPolicy="Never"), namespace=namespace)
    ready = wait_state(cluster, namespace, "mixed", "READY")
    session, since = session_of(lds, ready), worker.last_request()
    lds.event_fault("duplicate", copies=3)
    lds.event_fault("forge", "started", count=1)
    lds.event_fault("reorder", "started", delay_s=60, count=1)
    lds.act(session["id"], "log-in")
    lds.act(session["id"], "finish")
    wait_ended(cluster, lds, namespace, "mixed", "Failed")
    until(lambda: not lds.admin("GET", "/undelivered"), 60)
    sent = [one for one in lds.deliveries() if one["session"] == session["id"]]
    assert len({one["target"] for one in sent}) == 2, "both replicas were told"
    good = [one["type"] for one in sent if one["status"] == 202]  # a replica may ask for one again
    assert {kind: good.count(kind) for kind in good} == {"session.started": 4, "session.ended": 4}
    assert good[0] == "session.ended", "the end came first"
    assert {one["status"] for one in sent if one.get("forged")} == {401}
    assert done(worker, since) == ["extract", "stop", "wipe", "DELETE"]
    counts = {event["reason"]: event.get("count", 1) for event in cluster.events(namespace, "mixed")}
    assert [counts[word] for word in ("SessionStarted", "SessionEnded", "Collected", "Graded")] == [1] * 4


# ------------------------------------------------------------------------------------------ strays, after all others


@pytest.mark.timeout(400)
def test_session_that_no_lablet_has_is_archived(
    cluster: Cluster, lds: LdsSide, namespace: str, kind: str, strays: Strays
) -> None:
    """With our mark, when it is older than a minute; those of others never."""
    cluster.apply(learner("has", kind), namespace=namespace)
    mine = session_of(lds, wait_state(cluster, namespace, "has", "READY"))

    def states() -> dict[str, str]:
        return {one["id"]: one["state"] for one in lds.sessions()}

    until(lambda: states()[strays.ours] == "ARCHIVED", 360)
    assert [states()[one] for one in (mine["id"], *strays.foreign)] == ["PENDING"] * 3
