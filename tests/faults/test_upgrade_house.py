"""An upgrade of the whole house and the way back: provider, agents, mux, relay, portal, with people at work in it.

The older version is that of `test_upgrade`. Forty lablets, half of them behind a mux; ten labs of the portal and one of
a JupyterHub with an open console in a browser; every worker behind an agent, by each carrier. Each program is ended as
a kubelet ends it, and its successor is of the other version.

An agent that ends says so: its lablets are not Ready until its successor is there, a few seconds, and nothing is done
to them. Nothing else turns anything not Ready.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest

from tests.faults.test_upgrade import Calm, apply, calm, older
from tests.support.cluster import Cluster, is_ready
from tests.support.consoles import ask, create, on_menu, person
from tests.support.docs import ROOT
from tests.support.muxports import outside_ports, talk
from tests.support.relay import haproxy_or_skip
from tests.support.replicas import NOTHING, Replicas
from tests.support.topologies import definition, deployment, topology
from tests.support.waiting import until
from vkpsandbox import Sandbox
from vkpsandbox.controlplane import muxes, portal
from vkpsandbox.controlplane.content import NAMESPACE, apply_components
from vkpsandbox.controlplane.portal import HUB
from vkpsandbox.demo.browser import Person
from vkpsandbox.demo.hub import LEARNER, Campus, asked_by, plan_hub
from vkpsandbox.demo.stage import BOOTS, Stage

__all__ = ["older"]
LABLETS: Final = 20
"""Of each kind: with and without a channel."""
USERS: Final = 10
GRACE_S: Final = 30.0
"""Of a kubelet."""
COMPONENTS: Final = (*portal.MANIFESTS, *muxes.MANIFESTS)
FAMILY: Final = re.compile(r"^# TYPE (\S+ \S+)$", re.MULTILINE)


@pytest.fixture(scope="module")
def here() -> dict[str, Any]:
    """Where the hub is, and what it shares with the portal."""
    return plan_hub()


@pytest.fixture(scope="module", params=["mqtt", "http"])
def sandbox(
    tmp_path_factory: pytest.TempPathFactory, older: Path, here: Mapping[str, Any], request: pytest.FixtureRequest
) -> Iterator[Sandbox]:
    """All programs; providers and portals are of the older version from the start."""
    haproxy_or_skip()
    of_older = {"PYTHONPATH": str(older)}
    with Sandbox.up(
        "house",
        directory=tmp_path_factory.mktemp("house"),
        workers=4,
        replicas=2,
        tunnel=request.param,
        mux=True,
        portals=2,
        portal_env={**asked_by(here), **of_older},
        provider_env=of_older,
        worker_args=[BOOTS],
        tied=True,
    ) as made:
        yield made


class House:
    """What stands in the sandbox, and who is at work in it."""

    def __init__(self, cluster: Cluster, replicas: Replicas, alice: Person) -> None:
        """Fill it: lablets, labs of users, a server of the hub with a console that is open."""
        self.cluster, self.replicas, self.alice = cluster, replicas, alice
        plain, behind = deployment("plain", "plain", LABLETS), deployment("behind", "behind", LABLETS)
        expose = {"mux": f"labs.{NAMESPACE}"}
        cluster.define(
            definition("plain"),
            definition("behind", topology({"r1": "iosv"}, {"r1": ["serial:4001"]}), expose=expose),
        )
        cluster.apply(plain, behind)
        image = on_menu(cluster, "upgrade", {"h0": "alpine"})
        for number in range(USERS):
            create(cluster, f"user-{number}", person(cluster, f"user-{number}"), image)
        cluster.wait_ready("default", 2 * LABLETS)
        until(lambda: len(outside_ports(cluster)) == LABLETS, 60, "not all lablets have an outside port")
        self.uids = {
            pod["metadata"]["uid"] for pod in cluster.items("/api/v1/pods") if "runtimeClassName" in pod["spec"]
        }
        assert len(self.uids) == 2 * LABLETS + USERS + 1
        until(lambda: replicas.all_ready_in_claims(self.uids), 60)
        self._hub = cluster.kubectl("create", "token", HUB, f"--namespace={NAMESPACE}").stdout.strip()
        self.before, self.metrics = self._seen(), self._families()

    def replace(self, env: Mapping[str, str]) -> None:
        """End each program as a kubelet does, one after the other; its successor has these variables."""
        running = [each.name for each in self.cluster.sandbox.processes()]
        agents = [name for name in running if name.startswith("agent-")]
        assert len(agents) == len(self.cluster.workers)
        for name in agents:
            self._end(name, env)
        until(self._all_ready, 60, "the agents are not back")
        seen = self._seen()[0]
        self.before = (seen._replace(commands=self.before[0].commands), *self.before[1:])
        for name in ("provider-1", "provider-2", "mux", "relay", "portal-1", "portal-2"):
            self._end(name, env)
            if name.startswith("provider-"):
                until(self.replicas.is_balanced, 120, f"after the end of {name}")
            elif name.startswith("portal-"):
                until(lambda: self.labs() is not None, 60, "the portal does not answer")

    def _end(self, name: str, env: Mapping[str, str]) -> None:
        self.cluster.sandbox.stop(name, grace_s=GRACE_S)
        self.cluster.sandbox.start(name, env)

    def _all_ready(self) -> bool:
        pods = self.cluster.items("/api/v1/pods")
        return all(map(is_ready, pods)) and self.replicas.all_nodes_ready()

    def as_before(self, what: str) -> None:
        """Assert that nothing was restarted, moved or changed, and that people work on where they were."""
        until(self.replicas.all_nodes_ready, 60)
        (then, ports, labs), (now, ports_now, labs_now) = self.before, self._seen()
        for part in Calm._fields:
            pairs = zip(getattr(then, part).items(), getattr(now, part).items(), strict=True)
            assert {each for pair in pairs if pair[0] != pair[1] for each in map(str, pair)} == set(), (what, part)
        assert (ports_now, labs_now) == (ports, labs), what
        for name, port in list(outside_ports(self.cluster).items())[:3]:
            until(lambda port=port: talk(port, "r1"), 60, f"{name} does not answer").close()  # type: ignore[misc]
        self.alice.reads("You type", "#console-status")
        self.alice.fill(".xterm-helper-textarea", f"\n! {what}\n")
        self.alice.reads(what, ".xterm-rows")

    def metrics_as_before(self) -> None:
        """Assert that no metric has gone, or is of another type; which labels one has shows with what it counts."""
        lost = {program: self.metrics[program] - now for program, now in self._families().items()}
        assert not any(lost.values()), lost

    def labs(self) -> list[str] | None:
        """Return whose labs the hub sees; None while the portal does not answer."""
        try:
            status, labs = ask(self.cluster, "GET", "/labs", self._hub)
        except OSError:
            return None
        return sorted(labs) if status == 200 else None

    def _seen(self) -> tuple[Calm, dict[str, int], list[str] | None]:
        """Return what an upgrade must not change: lablets and Nodes, outside ports, and the labs that a hub sees."""
        return calm(self.cluster, self.replicas, self.uids), outside_ports(self.cluster), self.labs()

    def _page(self, program: str) -> str:
        try:
            return self.replicas.page(program, "/metrics").decode()
        except OSError:  # it has just been started
            return ""

    def _families(self) -> dict[str, set[str]]:
        """Return the names and types of each program's metrics."""
        found = {}
        for program in ("provider-1", "mux", "portal-1"):
            text = until(lambda program=program: self._page(program), 30, program)  # type: ignore[misc]
            found[program] = set(FAMILY.findall(text))
            assert found[program], program
        return found


@pytest.mark.timeout(1200)
def test_an_upgrade_of_all_programs_and_the_way_back_disturb_nobody(
    cluster: Cluster, replicas: Replicas, older: Path, here: Mapping[str, Any]
) -> None:
    of_older = {"PYTHONPATH": str(older)}
    apply(cluster, older / "manifests")
    apply_components(cluster.sandbox.kubectl, older / "manifests", COMPONENTS)
    for each in cluster.sandbox.processes():
        if each.name.startswith("agent-") or each.name in {"mux", "relay"}:
            cluster.sandbox.stop(each.name, grace_s=GRACE_S)
            cluster.sandbox.start(each.name, of_older)
    until(replicas.all_nodes_ready, 90)
    with ExitStack() as closing:
        campus = Campus(Stage(cluster.sandbox, print, closing), here)
        for show in (campus.prepare, campus.start, campus.follow, campus.work):
            show()
        house = House(cluster, replicas, campus.alice)
        house.as_before("older")
        apply(cluster, ROOT / "manifests")
        apply_components(cluster.sandbox.kubectl, ROOT / "manifests", COMPONENTS)
        house.replace(NOTHING)
        house.as_before("newer")
        house.metrics_as_before()
        house.replace(of_older)
        house.as_before("back")
        moved = sum(epoch for _, epoch in replicas.epochs().values())
        sys.stdout.write(f"lablets {len(house.uids)}, restarts 0, moves of Nodes between replicas {moved}\n")
        campus.alice.open("/hub/home")
        campus.alice.press_until("#stop", "#start[title]")
        until(lambda: LEARNER not in (house.labs() or [LEARNER]), 60, "the hub's server is not stopped")
