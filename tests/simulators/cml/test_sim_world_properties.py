"""What holds for a simulated controller whatever is done to it."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from tests.simulators.cml.bench import Bench
from vkpsim.cml.world.model import Lab, Node, Resources
from vkpsim.cml.world.states import RUNNING, NodeState, WireState


class Controller(RuleBasedStateMachine):
    """A controller on which anything is done at any time."""

    labs: Bundle[str] = Bundle("labs")

    def __init__(self) -> None:
        super().__init__()
        self.bench = Bench(licence_nodes=3, cpus=8, memory_gib=2, boot_seconds=(1.0, 5.0), stop_seconds=1.0)
        self.world = self.bench.world

    @rule(target=labs)
    def load(self) -> str:
        return self.bench.load()

    @rule(lab=labs, operation=st.sampled_from(["start", "stop", "wipe"]))
    def operate(self, lab: str, operation: str) -> None:
        assert self.bench.request("PUT", f"/labs/{lab}/{operation}")[0] in {204, 400}

    @rule(lab=labs, label=st.sampled_from(["h0", "h1"]), operation=st.sampled_from(["state/start", "state/stop"]))
    def operate_node(self, lab: str, label: str, operation: str) -> None:
        node = self.bench.node(lab, label)
        assert self.bench.request("PUT", f"/labs/{lab}/nodes/{node}/{operation}")[0] == 204

    @rule(target=labs, lab=consumes(labs))
    def delete(self, lab: str) -> Any:
        status, _ = self.bench.request("DELETE", f"/labs/{lab}")
        return multiple() if status == 204 else lab

    @rule(lab=labs, label=st.sampled_from(["h0", "h1"]))
    def crash(self, lab: str, label: str) -> None:
        self.world.crash(self.bench.now, self.world.labs[lab].nodes[self.bench.node(lab, label)])

    @rule(seconds=st.sampled_from([0.5, 1.0, 3.0, 10.0]))
    def wait(self, seconds: float) -> None:
        self.bench.now += seconds
        self.world.advance(self.bench.now)

    @rule(connected=st.booleans())
    def lose_host(self, *, connected: bool) -> None:
        self.world.set_connected(self.bench.now, connected=connected)

    @rule(quota=st.integers(0, 5))
    def change_quota(self, quota: int) -> None:
        self.world.set_quota(self.bench.now, quota)

    @rule()
    def reboot(self) -> None:
        self.world.reboot(self.bench.now)

    def nodes(self) -> list[tuple[Lab, Node]]:
        return [(lab, node) for lab in self.world.labs.values() for node in lab.nodes.values()]

    @invariant()
    def what_runs_and_only_that_holds_resources(self) -> None:
        held = Resources(0, 0, 0)
        for _, node in self.nodes():
            assert (node.held is not None) == (node.state in RUNNING)
            if node.held is not None:
                held.licences += node.held.licences
                held.cpu_points += node.held.cpu_points
                held.ram_mib += node.held.ram_mib
        assert held == self.world.host.used

    @invariant()
    def nobody_queues_who_would_fit(self) -> None:
        queued = [node for _, node in self.nodes() if node.state is NodeState.QUEUED]
        assert {node.id for node in queued} == {node.id for node in self.world.queued()}
        if self.world.host.launches:
            assert not any(self.world.host.fits(self.world.needs(node)) for node in queued)

    @invariant()
    def a_link_is_started_only_between_running_nodes(self) -> None:
        for lab, _ in self.nodes():
            for link in lab.links.values():
                if link.state is WireState.STARTED:
                    assert all(lab.nodes[end].state in RUNNING for end in (link.node_a, link.node_b))

    @invariant()
    def whoever_waits_long_enough_sees_every_boot_end(self) -> None:
        for _, node in self.nodes():
            if node.state is NodeState.STARTED:
                assert node.booted_at > self.bench.now - 10

    def teardown(self) -> None:
        self.world.set_connected(self.bench.now, connected=True)
        for lab in list(self.world.labs):
            self.operate(lab, "stop")
            self.bench.now += 2
            self.operate(lab, "wipe")
            assert self.bench.request("DELETE", f"/labs/{lab}")[0] == 204
        assert self.world.host.used == Resources(0, 0, 0)


TestController = Controller.TestCase
TestController.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
