"""A tenant who edits what says whose lablet it is, and an observer who knows what each learner saw.

The tenant has the rights of a user who may patch Pods, and no policy stops him: the sandbox has none. The observer asks
the simulated LDS and the simulated workers, never the provider.
"""

import json
import random
from collections.abc import Callable
from datetime import datetime
from itertools import pairwise
from typing import Any

from tests.support.cluster import PODS, Cluster, Refused, is_ready
from tests.support.history import History, operation, to_labs_of
from tests.support.lds import LdsSide
from tests.support.replicas import CLAIMS
from tests.support.topologies import pod

NOTE = "vkprovider.io/"
POOL = "evening"
LEARNERS = ("mallory", "eve", "frank", "grace")
_FORGED = (None, "", "\x07", *LEARNERS)


def notes_of(found: dict[str, Any]) -> dict[str, str]:
    """The annotations of this program, without its prefix."""
    annotations: dict[str, str] = found["metadata"].get("annotations", {})
    return {key.removeprefix(NOTE): value for key, value in annotations.items() if key.startswith(NOTE)}


class Tenant:
    """Edits the lablets of one namespace at random; an ended one is replaced."""

    def __init__(self, cluster: Cluster, namespace: str, kind: str, lablets: int, dice: random.Random) -> None:
        self.cluster, self.namespace, self.kind, self.dice = cluster, namespace, kind, dice
        self.made = 0
        self.names = [self._make() for _ in range(lablets)]
        self.edits: list[str] = []

    def _make(self) -> str:
        self.made += 1
        item = pod(f"lablet-{self.made}", self.kind)
        item["metadata"]["labels"] = {f"{NOTE}pool": POOL}
        self.cluster.apply(item, namespace=self.namespace)
        return f"lablet-{self.made}"

    def step(self) -> None:
        """Make one edit of one lablet, whichever."""
        at = self.dice.randrange(len(self.names))
        found = self.cluster.pod(self.namespace, self.names[at])
        if found is None or found["status"].get("phase") in {"Succeeded", "Failed"}:
            if found is not None:
                self.cluster.request("DELETE", f"{PODS.format(self.namespace)}/{self.names[at]}")
            self.names[at] = self._make()
            return
        acts: dict[Callable[[dict[str, Any]], dict[str, Any]], float] = {
            self._name: 8,
            self._forge: 3,
            self._assign: 4,
            self._lend: 1,
            self._end: 1,
            self._resume: 1,
        }
        [act] = self.dice.choices(list(acts), list(acts.values()))
        change = act(found)
        self.edits.append(f"{self.names[at]} {act.__name__} {json.dumps(change)}")
        try:
            self.cluster.patch(f"{PODS.format(self.namespace)}/{self.names[at]}", {"metadata": change})
        except Refused as error:
            if error.status not in {404, 409}:
                raise

    def _name(self, _: dict[str, Any]) -> dict[str, Any]:
        """Write or remove the username."""
        return {"annotations": {f"{NOTE}username": self.dice.choice(_FORGED)}}

    def _forge(self, _: dict[str, Any]) -> dict[str, Any]:
        """Write or remove a report."""
        report = self.dice.choice(["learner", "lds-session-id", "lds-login-url", "lab-id", "state"])
        other = self.cluster.pod(self.namespace, self.dice.choice(self.names))
        copied = notes_of(other).get(report) if other is not None else None
        return {"annotations": {f"{NOTE}{report}": self.dice.choice([None, copied, self.dice.choice(LEARNERS)])}}

    def _assign(self, found: dict[str, Any]) -> dict[str, Any]:
        """Do what `kubectl lablet assign` does, if it would."""
        notes = notes_of(found)
        if notes.keys() & {"username", "learner", "lds-session-id", "lent-by", "desired-state"} or not is_ready(found):
            return {}
        held = {"resourceVersion": found["metadata"]["resourceVersion"], "labels": {f"{NOTE}pool": None}}
        return {**held, "annotations": {f"{NOTE}username": self.dice.choice(LEARNERS), f"{NOTE}lent-by": POOL}}

    def _lend(self, _: dict[str, Any]) -> dict[str, Any]:
        """Change what the pool knows of the lablet."""
        if self.dice.random() < 0.5:
            return {"labels": {f"{NOTE}pool": self.dice.choice([None, POOL])}}
        return {"annotations": {f"{NOTE}lent-by": self.dice.choice([None, POOL])}}

    def _end(self, _: dict[str, Any]) -> dict[str, Any]:
        """End the learner's time, as `kubectl lablet release` does."""
        lent = {f"{NOTE}lent-by": POOL} if self.dice.random() < 0.8 else {}
        return {"annotations": {f"{NOTE}desired-state": "COLLECTING", **lent}}

    def _resume(self, _: dict[str, Any]) -> dict[str, Any]:
        """Take a request back, perhaps while it is carried out."""
        return {"annotations": {f"{NOTE}desired-state": None}}


class Observer:
    """Checks that no learner sees what is another's."""

    def __init__(self, cluster: Cluster, lds: LdsSide) -> None:
        self.cluster, self.lds = cluster, lds

    def rows(self) -> dict[str, dict[str, Any]]:
        """The claims of all workers, by Pod UID."""
        documents = [found["data"]["allocations.json"] for found in self.cluster.items(CLAIMS)]
        return {row["podUID"]: row for document in documents for row in json.loads(document)["lablets"]}

    def check_now(self) -> None:
        """One live session to a lablet, whose learner the claim names; no port in two sessions."""
        rows = self.rows()  # first: a session that a claim names is in the LDS by then
        sessions = {one["id"]: one for one in self.lds.sessions()}
        live: dict[str, list[str]] = {}
        ports: dict[tuple[str, int], str] = {}
        for one in sessions.values():
            if one["state"] == "ARCHIVED":
                continue
            live.setdefault(_lablet(one), []).append(one["username"])
            for device in one["devices"]:
                port = (device["host"], device["port"])
                other = ports.setdefault(port, one["id"])
                assert other == one["id"], f"{port} is shown to {one['username']} and to {sessions[other]['username']}"
        assert all(len(learners) == 1 for learners in live.values()), live
        for row in rows.values():
            session = row.get("session")
            if session and session.get("id"):
                names = {row.get("learner"), session["username"], sessions[session["id"]]["username"]}
                assert len(names) == 1, f"{row['pod']}: {names}"

    def check_history(self) -> int:
        """Between two sessions of a lablet the first was archived and the lab wiped, or deleted; count such pairs."""
        by_lablet: dict[str, list[dict[str, Any]]] = {}
        for one in self.lds.sessions():
            by_lablet.setdefault(_lablet(one), []).append(one)
        log = self.lds.access_log()
        archived = {e["path"].split("/")[4]: e["arrived_unix_s"] for e in log if e["path"].endswith("/archive")}
        done, pairs = History(*self.cluster.workers, ever=True).done(), 0
        for uid, sessions in by_lablet.items():
            wiped = [e["arrived_unix_s"] for e in to_labs_of(uid, done) if operation(e) in {"wipe", "DELETE"}]
            for first, second in pairwise(sorted(sessions, key=_number)):
                pairs += 1
                created = _unix(second["created_at"])
                assert first["state"] == "ARCHIVED", first
                assert archived[first["id"]] <= created, f"{second['username']} came before {first['username']} left"
                between = [at for at in wiped if _unix(first["created_at"]) < at < created]
                assert between, f"{second['username']} has the lab of {first['username']}"
        return pairs

    def is_settled(self, namespace: str) -> bool:
        """Each Pod shows the learner of its session, and nothing where there is none."""
        rows, sessions = self.rows(), {one["id"]: one for one in self.lds.sessions()}
        for found in self.cluster.pods(namespace):
            row, notes = rows.get(found["metadata"]["uid"]), notes_of(found)
            if row is None or found["metadata"].get("deletionTimestamp") or found["status"]["phase"] != "Running":
                continue
            session = row.get("session", {})
            learner = row.get("learner", "")
            assert notes.get("learner", "") == learner, (notes, row)
            assert notes.get("lds-session-id", "") == session.get("id", ""), (notes, row)
            if learner:
                assert notes.get("username") == learner, (notes, row)
                assert session.get("id"), row
                assert sessions[session["id"]]["username"] == learner
                assert sessions[session["id"]]["state"] != "ARCHIVED"
        return True


def _lablet(session: dict[str, Any]) -> str:
    """Return the UID of its Pod; of a session of others what they wrote there, or nothing."""
    return str(session["client_key"] or "").partition(".")[0]


def _number(session: dict[str, Any]) -> int:
    """Return which of its lablet's sessions it is, from 1."""
    return int(str(session["client_key"] or "").partition(".")[2] or 1)


def _unix(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
