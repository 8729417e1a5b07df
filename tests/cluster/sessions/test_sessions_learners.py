"""A learner's session stays that learner's, whatever others write and however kubectl lablet passes it on."""

import json
import random
from typing import Any

import pytest

from tests.cluster.sessions import learner, session_of, told, wait_state
from tests.cluster.test_lablets_life import done, made
from tests.support.cluster import PODS, Cluster
from tests.support.lds import LdsSide
from tests.support.learners import NOTE, Observer, Tenant, notes_of
from tests.support.plugin import lablet, succeeded
from tests.support.topologies import deployment, pod
from tests.support.waiting import until

pytestmark = pytest.mark.tunnelled

EDITS = 60
SEED = 15


def annotate(cluster: Cluster, namespace: str, name: str, **notes: str | None) -> None:
    changes = {f"{NOTE}{key.replace('_', '-')}": value for key, value in notes.items()}
    cluster.patch(f"{PODS.format(namespace)}/{name}", {"metadata": {"annotations": changes}})


def user_of(cluster: Cluster, namespace: str, name: str) -> str:
    """The user that `kubectl lablet list` shows."""
    rows: list[dict[str, Any]] = json.loads(succeeded(cluster, "list", "-n", namespace, "-o", "json"))["items"]
    return str(next(row["user"] for row in rows if row["name"] == name))


@pytest.mark.parametrize("written", ["eve", None])
def test_session_and_lab_are_not_the_next_learners(
    cluster: Cluster, lds: LdsSide, namespace: str, kind: str, written: str | None
) -> None:
    """The name is changed or removed, and the lablet assigned to the next: everything stays the first one's."""
    cluster.apply(learner("p", kind, "mallory"), namespace=namespace)
    session = session_of(lds, wait_state(cluster, namespace, "p", "READY"))
    annotate(cluster, namespace, "p", username=written, learner=None, lds_session_id=None)
    refused = lablet(cluster, "assign", "p", "frank", "-n", namespace)
    assert refused.returncode == 1
    assert "pod/p is assigned to mallory; end that session first: kubectl lablet release p" in refused.stderr
    whose = {"username": "mallory", "learner": "mallory", "lds-session-id": session["id"]}
    until(lambda: whose.items() <= notes_of(made(cluster, namespace, "p")).items(), 30)
    assert user_of(cluster, namespace, "p") == "mallory"
    said = until(lambda: told(cluster, namespace, "p").get("UsernameRestored"), 30)
    assert said
    assert ("changed to 'eve'" if written else "was removed") in said
    assert "kubectl lablet release p" in said
    of_lablet = [one for one in lds.sessions() if str(one["client_key"]).startswith(session["client_key"])]
    assert [one["username"] for one in of_lablet] == ["mallory"]


def test_released_lablet_of_a_pool_has_nothing_of_its_learner(
    cluster: Cluster, lds: LdsSide, namespace: str, kind: str
) -> None:
    """Collected, archived, wiped, warm again; the next learner has another session and a fresh lab."""
    worker = cluster.workers[0]
    item = pod("lent", kind)
    item["metadata"]["labels"] = {f"{NOTE}pool": "evening"}
    cluster.apply(item, namespace=namespace)
    [ready] = cluster.wait_ready(namespace, 1)
    assert "has no learner" in lablet(cluster, "release", "lent", "-n", namespace).stderr
    succeeded(cluster, "assign", "lent", "mallory", "-n", namespace)
    until(lambda: "lds-session-id" in notes_of(made(cluster, namespace, "lent")), 30)
    first, since = session_of(lds, made(cluster, namespace, "lent")), worker.last_request()
    lds.act(first["id"], "log-in")
    lds.act(first["id"], "answer", {"item": "task-1", "answer": "of mallory"})
    released = lablet(cluster, "release", "lent", "-n", namespace)
    assert released.stdout == "pod/lent is warm again in pool evening\n", released.stderr
    assert "pod/lent INSTANTIATING: ReturningToPool" in released.stderr, "each stage is shown"
    assert done(worker, since) == ["extract", "stop", "wipe", "DELETE", "import", "start"]
    assert (
        not {"username", "learner", "lds-session-id", "lds-login-url", "lds-base-url", "lent-by"}
        & notes_of(made(cluster, namespace, "lent")).keys()
    )
    assert user_of(cluster, namespace, "lent") == ""
    succeeded(cluster, "assign", "lent", "frank", "-n", namespace)
    assert user_of(cluster, namespace, "lent") == "frank"
    key = f"{ready['metadata']['uid']}.2"
    second = until(lambda: lds.session_of(key), 30)
    assert second
    assert (second["username"], second["id"] != first["id"]) == ("frank", True)
    assert lds.api("GET", f"/sessions/{second['id']}/responses")["responses"] == []
    until(lambda: notes_of(made(cluster, namespace, "lent")).get("lds-session-id") == second["id"], 30)
    before = {one["id"]: one for one in lds.sessions()}[first["id"]]
    assert (before["state"], before["username"]) == ("ARCHIVED", "mallory")


def test_released_lablet_without_a_pool_ends_and_is_deleted(
    cluster: Cluster, lds: LdsSide, namespace: str, kind: str
) -> None:
    """A Deployment makes a new one in its place; without waiting the ended Pod stays."""
    item = deployment("replica", kind, 1)
    item["spec"]["template"]["metadata"]["annotations"] = {f"{NOTE}username": "mallory"}
    cluster.apply(item, learner("alone", kind, "eve"), namespace=namespace)
    pods = {found["metadata"]["name"]: found for found in cluster.wait_ready(namespace, 2)}
    [name] = pods.keys() - {"alone"}
    for found in pods.values():
        session = lds.session_of(found["metadata"]["uid"])
        assert session
        lds.act(session["id"], "log-in")
        lds.act(session["id"], "answer", {"item": "task-1", "answer": "router ospf 1"})
    said = succeeded(cluster, "release", name, "-n", namespace)
    assert said == f"pod/{name} has ended (Succeeded) and was deleted\n"
    assert cluster.pod(namespace, name) is None
    assert lds.session_of(pods[name]["metadata"]["uid"]) is None, "archived"
    said = succeeded(cluster, "release", "alone", "--no-wait", "-n", namespace)
    assert said == "pod/alone: the session of eve is being ended\n"
    until(lambda: made(cluster, namespace, "alone")["status"]["phase"] == "Succeeded", 60)
    assert "was deleted" in succeeded(cluster, "release", "alone", "-n", namespace)


def test_random_edits_show_no_learner_what_is_anothers(
    cluster: Cluster, lds: LdsSide, namespace: str, kind: str
) -> None:
    """The short form of `tests/faults/test_hostile_learners.py`."""
    tenant, observer = Tenant(cluster, namespace, kind, 2, random.Random(SEED)), Observer(cluster, lds)
    cluster.wait_ready(namespace, 2)
    for number in range(EDITS):
        tenant.step()
        if number % 10 == 0:
            observer.check_now()
    until(lambda: observer.is_settled(namespace), 60)
    observer.check_now()
    observer.check_history()


# ------------------------------------------------------------------------------------------ the login


def test_whole_login_url_is_for_who_may_log_in(cluster: Cluster, namespace: str, kind: str) -> None:
    """`kubectl lablet login`: the Pod shows the URL without its query, and nobody else is shown more."""
    cluster.apply(learner("mine", kind), namespace=namespace)
    found = wait_state(cluster, namespace, "mine", "READY")
    shown = notes_of(found)["lds-login-url"]
    tokens = {}
    for name, role in (("reader", "edit"), ("portal", "vkprovider-login")):
        account = f"--serviceaccount={namespace}:{name}"
        cluster.kubectl("create", "serviceaccount", name, f"--namespace={namespace}")
        cluster.kubectl("create", "rolebinding", name, f"--clusterrole={role}", account, f"--namespace={namespace}")
        token = cluster.kubectl("create", "token", name, "--audience=vkprovider.io", f"--namespace={namespace}")
        tokens[name] = token.stdout.strip()

    def login(what: str, who: str) -> tuple[str, ...]:
        return ("login", what, f"--url={cluster.provider_url}", f"--token={tokens[who]}", "-n", namespace)

    for name in ("mine", found["metadata"]["uid"]):
        whole = succeeded(cluster, *login(name, "portal")).strip()
        assert whole.startswith(f"{shown}?"), "what the Pod shows has no query"
        assert len(whole) > len(shown) + 10
    refused = lablet(cluster, *login("mine", "reader"))
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "may not get lablets.vkprovider.io/login of the Pod" in refused.stderr
