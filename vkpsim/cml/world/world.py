"""The state machine of a controller: labs start, queue, boot, stop and are wiped. Pure: time is an argument.

Nothing here waits. Boots and stops that end later are in a heap of timers; `advance(now)` carries them out in the
order of their times, and must be called before anything is read or changed. A node that finds no licence, CPU or
memory stays QUEUED and is launched, oldest first, when something becomes free.
"""

import heapq
from collections.abc import Callable, Iterable

from vkpsim.cml.errors import CmlError, E
from vkpsim.cml.world import wires
from vkpsim.cml.world.boots import BootTimes
from vkpsim.cml.world.definitions import Definition, stand_in
from vkpsim.cml.world.events import Events
from vkpsim.cml.world.host import Host
from vkpsim.cml.world.model import Boot, Lab, Node, Resources, settled
from vkpsim.cml.world.platforms import DEFINITIONS
from vkpsim.cml.world.rules import LAB_RULES, NODE_RULES, Effect, LabOp, NodeOp
from vkpsim.cml.world.states import ACTIVE, RUNNING, NodeState, WireState


class World:
    """All labs of one controller, and the compute host on which their nodes run."""

    def __init__(
        self,
        *,
        total: Resources,
        boot_times: BootTimes,
        new_id: Callable[[], str],
        stop_s: float = 0.0,
    ) -> None:
        self.host = Host(new_id(), total)
        self.boot_times = boot_times
        self.new_id = new_id
        self.stop_s = stop_s
        self.registered = True
        self.labs: dict[str, Lab] = {}
        self.definitions: dict[str, Definition] = dict(DEFINITIONS)
        self.launches = 0
        self.events = Events()
        self._queue: dict[tuple[str, str], Node] = {}
        self._timers: list[tuple[float, int, str, str]] = []
        self._ticket = 0

    def lab(self, lab_id: str) -> Lab:
        """Find a lab.

        Raises:
            CmlError: No lab has this id.
        """
        lab = self.labs.get(lab_id)
        if lab is None:
            raise CmlError(E.LAB_NOT_FOUND, id=lab_id)
        return lab

    def node(self, lab_id: str, node_id: str) -> Node:
        """Find a node.

        Raises:
            CmlError: No lab has this id, or it has no such node.
        """
        node = self.lab(lab_id).nodes.get(node_id)
        if node is None:
            raise CmlError(E.NODE_NOT_FOUND, id=node_id)
        return node

    def state(self, node: Node) -> NodeState:
        """Return the state that a node shows: DISCONNECTED while it runs and its compute host is lost."""
        if not self.host.connected and node.state in RUNNING:
            return NodeState.DISCONNECTED
        return node.state

    def definition(self, name: str) -> Definition:
        """Find a node definition; an unknown one gets a stand-in, as imports accept it with a warning."""
        return self.definitions.get(name) or stand_in(name)

    def needs(self, node: Node) -> Resources:
        """Return the resources that a node needs to run."""
        definition = self.definition(node.node_definition)
        cpus = definition.cpus if node.cpus is None else node.cpus
        limit = 100 if node.cpu_limit is None else node.cpu_limit
        ram_mib = definition.ram_mib if node.ram is None else node.ram
        return Resources(int(definition.licensed), (cpus or 0) * limit, ram_mib or 0)

    def queued(self) -> list[Node]:
        """List the nodes that wait for a licence, CPU or memory, oldest first."""
        return list(self._queue.values())

    # time

    def advance(self, now: float) -> None:
        """Carry out everything that is due: stops, finished boots, launches of queued nodes that fit."""
        while self._timers and self._timers[0][0] <= now:
            at, _, lab_id, node_id = heapq.heappop(self._timers)
            lab = self.labs.get(lab_id)
            node = lab.nodes.get(node_id) if lab else None
            if lab is None or node is None:
                continue
            if node.stop_at is not None and node.stop_at <= at:
                self._halt(at, lab, node)
                self._launch_queued(at)
            elif node.state is NodeState.STARTED and node.booted_at <= at:
                self._enter(at, lab, node, NodeState.BOOTED)

    def _wake(self, at: float, node: Node) -> None:
        self._ticket += 1
        heapq.heappush(self._timers, (at, self._ticket, node.lab, node.id))

    # labs

    def start_lab(self, now: float, lab: Lab) -> None:
        """Start the nodes of a lab that do not run.

        Raises:
            CmlError: The controller has no licence registered or no compute host that is READY.
        """
        if LAB_RULES[LabOp.START][lab.state] is Effect.DO:
            self._start(now, lab, lab.nodes.values())

    def stop_lab(self, now: float, lab: Lab) -> None:
        """Stop all nodes of a lab."""
        if _allowed(LAB_RULES[LabOp.STOP][lab.state], id=lab.id):
            self._stop(now, lab, lab.nodes.values())

    def wipe_lab(self, now: float, lab: Lab) -> None:
        """Forget the disks, addresses and consoles of all nodes.

        Raises:
            CmlError: A node is active.
        """
        if _allowed(LAB_RULES[LabOp.WIPE][lab.state], id=lab.id):
            for node in lab.nodes.values():
                if node.state is NodeState.STOPPED:
                    self._wipe(now, lab, node)

    def delete_lab(self, now: float, lab: Lab) -> None:
        """Delete a lab.

        Raises:
            CmlError: It is not wiped.
        """
        _allowed(LAB_RULES[LabOp.DELETE][lab.state], id=lab.id)
        self.events.record(now, lab, "DELETED", "Lab", lab.id)
        del self.labs[lab.id]
        self.events.forget(lab.id)

    # nodes

    def check(self, operation: NodeOp, node: Node, **values: object) -> bool:
        """Look an operation up in the table; False if there is nothing to do.

        Raises:
            CmlError: The state of the node refuses it.
        """
        state = self.state(node)
        return _allowed(NODE_RULES[operation][state], id=node.id, state=state, **values)

    def start_node(self, now: float, lab: Lab, node: Node) -> None:
        """Start one node.

        Raises:
            CmlError: The controller has no licence registered or no compute host that is READY.
        """
        if self.check(NodeOp.START, node):
            self._start(now, lab, [node])

    def stop_node(self, now: float, lab: Lab, node: Node) -> None:
        """Stop one node."""
        if self.check(NodeOp.STOP, node):
            self._stop(now, lab, [node])

    def wipe_node(self, now: float, lab: Lab, node: Node) -> None:
        """Wipe the disks of one node.

        Raises:
            CmlError: It is active.
        """
        if self.check(NodeOp.WIPE, node):
            self._wipe(now, lab, node)

    # events without a request

    def crash(self, now: float, node: Node) -> None:
        """Power a device off from inside."""
        if node.state in ACTIVE:
            self._halt(now, self.labs[node.lab], node)
            self._launch_queued(now)

    def reboot(self, now: float) -> None:
        """Restart the host: all active nodes stop."""
        for lab in self.labs.values():
            for node in lab.nodes.values():
                if node.state in ACTIVE:
                    self._halt(now, lab, node)

    def set_connected(self, now: float, *, connected: bool) -> None:
        """Lose or regain the compute host; its running nodes show as DISCONNECTED meanwhile."""
        self.host.connected = connected
        self._launch_queued(now)

    def set_admission(self, now: float, admission_state: str) -> None:
        """Change the admission state of the compute host; only a READY one launches nodes."""
        self.host.admission_state = admission_state
        self._launch_queued(now)

    def set_quota(self, now: float, licences: int) -> None:
        """Change the licence quota; running nodes are not touched."""
        self.host.total.licences = licences
        self._launch_queued(now)

    # transitions

    def _start(self, now: float, lab: Lab, nodes: Iterable[Node]) -> None:
        if not self.registered:
            raise CmlError(E.CANNOT_START, reason="the product is not licensed.")
        if self.host.admission_state != "READY":
            raise CmlError(E.CANNOT_START, reason="no compute host is ready.")
        waking = [node for node in nodes if node.state in {NodeState.DEFINED, NodeState.STOPPED}]
        lab.starts += bool(waking)
        for node in sorted(waking, key=lambda node: -(node.priority or 0)):
            self._queue[lab.id, node.id] = node
            self._enter(now, lab, node, NodeState.QUEUED)
        self._launch_queued(now)

    def _launch_queued(self, now: float) -> None:
        if not self.host.launches:
            return
        for key, node in list(self._queue.items()):
            needs = self.needs(node)
            if self.host.fits(needs):
                del self._queue[key]
                self._launch(now, self.labs[node.lab], node, needs)

    def _launch(self, now: float, lab: Lab, node: Node, needs: Resources) -> None:
        definition = self.definition(node.node_definition)
        node.held = needs
        self.host.take(needs)
        self.launches += 1
        done_s = self.boot_times.draw(definition.id, self.launches)
        timeout_s = self.boot_times.timeout(definition.boot_timeout_s, node.cpu_limit or 100)
        boot = Boot(now, now + min(done_s, timeout_s), text_at=now + done_s if done_s > timeout_s else None)
        node.boots.append(boot)
        if len(node.boots) == 1:  # a node that was only stopped keeps its keys
            node.console_keys = [self.new_id() for _ in range(definition.serial_ports)]
            node.vnc_key = self.new_id() if definition.vnc else None
        self._enter(now, lab, node, NodeState.STARTED)
        wires.connect(lab, node)
        self._wake(boot.booted_at, node)

    def _stop(self, now: float, lab: Lab, nodes: Iterable[Node]) -> None:
        for node in nodes:
            if node.state in RUNNING and self.stop_s > 0:
                if node.stop_at is None:
                    node.stop_at = now + self.stop_s
                    self._wake(node.stop_at, node)
            elif node.state in ACTIVE:
                self._halt(now, lab, node)
        self._launch_queued(now)

    def _halt(self, now: float, lab: Lab, node: Node) -> None:
        if node.state is NodeState.QUEUED:
            self._queue.pop((lab.id, node.id), None)
        else:
            if node.held is not None:
                self.host.give(node.held)
            node.held = None
            node.boots[-1].ended_at = now
        node.stop_at = None
        self._enter(now, lab, node, NodeState.STOPPED)
        wires.disconnect(lab, node, WireState.STOPPED)

    def _wipe(self, now: float, lab: Lab, node: Node) -> None:
        node.boots, node.typed, node.learned = [], [], []
        node.console_keys, node.vnc_key = [], None
        node.wipes += 1
        self._enter(now, lab, node, NodeState.DEFINED)
        wires.disconnect(lab, node, WireState.DEFINED)

    def _enter(self, now: float, lab: Lab, node: Node, state: NodeState) -> None:
        self.events.record(now, lab, "state", "Node", node.id, data={"state": state}, previous={"state": node.state})
        node.state = state

    def resume(self, labs: dict[str, Lab]) -> None:
        """Load labs from a stored state: charge running nodes, queue waiting ones, set the timers again."""
        self.labs = labs
        for lab in labs.values():
            for node in lab.nodes.values():
                if node.state is NodeState.QUEUED:
                    self._queue[lab.id, node.id] = node
                elif node.held is not None:
                    self.host.take(node.held)
                    if not settled(node):
                        self._wake(node.booted_at if node.stop_at is None else node.stop_at, node)


def _allowed(row: Effect | E, **values: object) -> bool:
    if isinstance(row, E):
        raise CmlError(row, **{"line": 0, **values})
    return row is Effect.DO
