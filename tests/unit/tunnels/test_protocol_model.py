"""Whatever happens to messages and agents: nothing is executed twice, and every answer is its own caller's."""

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.unit.tunnels.tunnelworld import World
from tunnels.base import ConnectFailed, ConnectionLost, DeadlineExceeded, Response, StaleEpoch
from tunnels.wire import PIECE_BYTES

BODIES = st.sampled_from([b"", b"x", b"y" * (PIECE_BYTES + 1), b"z" * (20 * PIECE_BYTES)])
INDEX = st.integers(0, 10_000)


class Tunnel(RuleBasedStateMachine):
    """Two callers, the second of which takes over; one agent, which is restarted."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World(callers=2)
        self.epochs = [1, 0]

    @rule(
        caller=st.integers(0, 1),
        method=st.sampled_from(["GET", "PUT", "POST", "DELETE"]),
        body=BODIES,
        deadline_s=st.sampled_from([0.1, 3.0, 60.0]),
    )
    def ask(self, caller: int, method: str, body: bytes, deadline_s: float) -> None:
        epoch = self.epochs[caller]
        self.world.ask(caller, method if epoch else "GET", body, deadline_s=deadline_s, epoch=epoch)

    @rule(caller=st.integers(0, 1))
    def take_over(self, caller: int) -> None:
        self.epochs[caller] = max(self.epochs) + 1

    @precondition(lambda self: self.world.network)
    @rule(index=INDEX)
    def deliver_in_any_order(self, index: int) -> None:
        self.world.deliver(index % len(self.world.network))

    @precondition(lambda self: self.world.network)
    @rule(index=INDEX)
    def deliver_twice(self, index: int) -> None:
        self.world.deliver(index % len(self.world.network), keep=True)

    @precondition(lambda self: self.world.network)
    @rule(index=INDEX)
    def lose(self, index: int) -> None:
        self.world.network.pop(index % len(self.world.network))

    @rule(count=st.integers(1, 30))
    def deliver_some(self, count: int) -> None:
        for _ in range(min(count, len(self.world.network))):
            self.world.deliver(0)

    @precondition(lambda self: self.world.agent.running)
    @rule(index=INDEX, error=st.booleans())
    def finish(self, index: int, error: bool) -> None:  # noqa: FBT001 (Hypothesis passes by name)
        running = list(self.world.agent.running)
        self.world.finish(running[index % len(running)], error=error)

    @rule(seconds=st.sampled_from([0.1, 1.0, 2.5, 10.0, 40.0]))
    def wait(self, seconds: float) -> None:
        self.world.advance(seconds)

    @rule(goodbye=st.booleans())
    def restart_the_agent(self, goodbye: bool) -> None:  # noqa: FBT001 (Hypothesis passes by name)
        self.world.restart(goodbye=goodbye)

    @rule(caller=st.integers(0, 1))
    def reconnect(self, caller: int) -> None:
        self.world.reconnect(caller)

    @invariant()
    def no_command_is_executed_twice(self) -> None:
        for asked in self.world.asked:
            if asked.method != "GET":
                assert self.world.executed[asked.path] <= 1

    @invariant()
    def no_older_epoch_acts_after_a_newer_one(self) -> None:
        owned = [epoch for epoch in self.world.epochs_run if epoch]
        assert owned == sorted(owned)

    @invariant()
    def every_answer_is_its_own_callers(self) -> None:
        for asked in self.world.asked:
            if isinstance(asked.outcome, Response):
                assert asked.outcome.body == asked.path.encode() + b"=" + asked.body

    def teardown(self) -> None:
        """On a healed network, everything ends: with an answer, or with an error that says what is known."""
        self.world.settle()
        for asked in self.world.asked:
            assert asked.outcome is not None
            if isinstance(asked.outcome, StaleEpoch | ConnectFailed):
                assert not self.world.executed[asked.path]
            assert isinstance(asked.outcome, Response | StaleEpoch | ConnectFailed | ConnectionLost | DeadlineExceeded)
        last = self.world.ask(0, "POST", b"q" * (3 * PIECE_BYTES), epoch=max(self.epochs) + 1)
        self.world.settle()
        assert isinstance(last.outcome, Response)
        self.every_answer_is_its_own_callers()
        self.no_command_is_executed_twice()


TestTunnel = Tunnel.TestCase
TestTunnel.settings = settings(max_examples=60, stateful_step_count=50, deadline=None)
