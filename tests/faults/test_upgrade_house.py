"""An upgrade of the whole house and the way back: provider, agents, mux, relay, portal, with people at work in it.

The older version is that of `test_upgrade`. Forty lablets, half of them behind a mux; ten labs of the portal and one of
a JupyterHub with an open console in a browser; every worker behind an agent, by each carrier. Each program is ended as
a kubelet ends it, and its successor is of the other version.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest

from tests.faults.test_upgrade import Calm, apply, calm, older
from tests.support.cluster import Cluster
from tests.support.consoles import ask, create, on_menu, person
from tests.support.docs import ROOT
from tests.support.muxports import outside_ports, talk
from tests.support.relay import haproxy_or_skip
from tests.support.replicas import NOTHING, Replicas
from tests.support.topologies import definition, deployment, topology
from tests.support.waiting import until
from vkpsandbox import Sandbox
from vkpsandbox.controlplane.content import NAMESPACE
from vkpsandbox.controlplane.portal import HUB
from vkpsandbox.demo.browser import Person
from vkpsandbox.demo.hub import Campus, asked_by, plan_hub
from vkpsandbox.demo.stage import BOOTS, Stage

__all__ = ["older"]
LABLETS: Final = 20
"""Of each kind: with and without a channel."""
USERS: Final = 10
GRACE_S: Final = 30.0
"""Of a kubelet."""
SERIES: Final = re.compile(r"^([a-z_:]+)(?:\{([^}]*)\})? ", re.MULTILINE)
LABEL: Final = re.compile(r'([a-z_]+)="')
COMPONENTS: Final = {"portal": ("roles", "rbac", "confine", "mark"), "mux": ("rbac", "confine"), "relay": ("rbac",)}
"""What `sandbox up` applies of each component."""


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
        self.before, self.metrics = self._seen(), self._series()

    def replace(self, env: Mapping[str, str]) -> None:
        """End each program as a kubelet does, one after the other; its successor has these variables."""
        running = [each.name for each in self.cluster.sandbox.processes()]
        agents = [name for name in running if name.startswith("agent-")]
        assert len(agents) == len(self.cluster.workers)
        for name in (*agents, "provider-1", "provider-2", "mux", "relay", "portal-1", "portal-2"):
            self.cluster.sandbox.stop(name, grace_s=GRACE_S)
            self.cluster.sandbox.start(name, env)
            until(lambda name=name: self.cluster.sandbox.process(name).state == "running", 30)  # type: ignore[misc]
            if name.startswith("provider-"):
                until(self.replicas.is_balanced, 120, f"after the end of {name}")
            elif name.startswith("portal-"):
                until(lambda: self._labs() is not None, 60, "the portal does not answer")

    def as_before(self, what: str) -> None:
        """Assert that nothing was restarted, moved or changed, and that people work on where they were."""
        until(self.replicas.all_nodes_ready, 60)
        assert self._seen() == self.before, what
        for name, port in list(outside_ports(self.cluster).items())[:3]:
            until(lambda port=port: talk(port, "r1"), 60, f"{name} does not answer").close()  # type: ignore[misc]
        self.alice.reads("You type", "#console-status")
        self.alice.fill(".xterm-helper-textarea", f"\n! {what}\n")
        self.alice.reads(what, ".xterm-rows")

    def metrics_as_before(self) -> None:
        """Assert that no metric, and no label of one, has gone."""
        lost = {program: self.metrics[program] - now for program, now in self._series().items()}
        assert not any(lost.values()), lost

    def _labs(self) -> list[str] | None:
        """Return whose labs the hub sees; None while the portal does not answer."""
        try:
            status, labs = ask(self.cluster, "GET", "/labs", self._hub)
        except OSError:
            return None
        return sorted(labs) if status == 200 else None

    def _seen(self) -> tuple[Calm, dict[str, int], list[str] | None]:
        """Return what an upgrade must not change: lablets and Nodes, outside ports, and the labs that a hub sees."""
        return calm(self.cluster, self.replicas, self.uids), outside_ports(self.cluster), self._labs()

    def _series(self) -> dict[str, set[tuple[str, ...]]]:
        """Return the names of each program's metrics, each with those of its labels."""
        found = {}
        for program in ("provider-1", "mux", "portal-1"):
            text = self.replicas.page(program, "/metrics").decode()
            found[program] = {(name, *sorted(LABEL.findall(labels))) for name, labels in SERIES.findall(text)}
            assert found[program], program
        return found


def apply_components(cluster: Cluster, manifests: Path) -> None:
    """Apply what `sandbox up` applies of the components."""
    for component, files in COMPONENTS.items():
        for name in files:
            path = manifests / "components" / component / f"{name}.yaml"
            cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(path))


@pytest.mark.timeout(1200)
def test_an_upgrade_of_all_programs_and_the_way_back_disturb_nobody(
    cluster: Cluster, replicas: Replicas, older: Path, here: Mapping[str, Any]
) -> None:
    of_older = {"PYTHONPATH": str(older)}
    apply(cluster, older / "manifests")
    apply_components(cluster, older / "manifests")
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
        apply_components(cluster, ROOT / "manifests")
        house.replace(NOTHING)
        house.as_before("newer")
        house.metrics_as_before()
        house.replace(of_older)
        house.as_before("back")
        moved = sum(epoch for _, epoch in replicas.epochs().values())
        sys.stdout.write(f"lablets {len(house.uids)}, restarts 0, Ready flips 0, moves between replicas {moved}\n")
        campus.stop()
