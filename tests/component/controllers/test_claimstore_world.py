"""Two writers of one worker's claims, a network that loses answers, and people who edit the ConfigMap.

A lab is a side effect of a saved row. Whatever happens, no port is ever in two labs, and the document, whenever it can
be read, names every port of every lab. `CLAIM_STEPS=5000` makes a long run of it.
"""

import asyncio
import json
import os
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from typing import Any, ClassVar

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.component.controllers.claimdocument import KEY, ClaimDocument
from tests.component.controllers.parts import claim_store, connect, context
from tests.support.apiserver import CONFIG_MAPS, Admin, ApiServer
from tests.support.faultyapi import FaultyApi
from vkprovider.labs.controllers.claims.store import ClaimStore
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.platform.errors import InputError, OutsideError
from vkprovider.platform.ports.allocator import TCP, UDP, PortBounds, RequestedPort

HERE = PortBounds(100, 111)
STEPS = int(os.environ.get("CLAIM_STEPS", "300"))
STEPS_EACH = 50

writers = st.integers(0, 1)
slots = st.lists(st.sampled_from(["a", "b", "c", "udp1", "udp2"]), max_size=4, unique=True)
picks = st.integers(0, 1000)


def is_udp(name: str) -> bool:
    return name.startswith("udp")


class World(RuleBasedStateMachine):
    """The rules.

    Attributes:
        labs: The ports of every lab, by the Pod's UID; a lab is made once, and only of a saved row.
        ended: Pods that are gone for good.
        foreign: Rows that people have put into the document.
    """

    apiserver: ClassVar[ApiServer]

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.labs: dict[str, set[tuple[str, int]]] = {}
        self.ended: set[str] = set()
        self.foreign: list[dict[str, Any]] = []
        self.pods = 0
        self.steps = 0
        self.last: dict[str, Any] | None = None

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(work)

    def outcome(self, work: Coroutine[Any, Any, Any]) -> Exception | None:
        try:
            self.run(work)
        except (InputError, OutsideError) as error:
            return error
        return None

    @initialize()
    def begin_world(self) -> None:
        self.stack = AsyncExitStack()
        self.run(self.open())
        self.ctx = context(self.kube)
        self.stores = [self.new_store(), self.new_store()]
        for store in self.stores:
            self.run(self.loaded(store))

    async def open(self) -> None:
        admin = await self.stack.enter_async_context(Admin(self.apiserver))
        api = await self.stack.enter_async_context(FaultyApi(self.apiserver.url, self.apiserver.admin_tls()))
        self.stack.push_async_callback(admin.delete, CONFIG_MAPS)
        self.server = ClaimDocument(admin, api)
        self.kube = await connect(self.stack, api)

    def teardown(self) -> None:
        try:
            if hasattr(self, "kube"):
                try:
                    self.leave_nothing_behind()
                finally:
                    self.run(self.stack.aclose())
        finally:
            self.loop.close()

    @property
    def exists(self) -> bool:
        """Whether there was a document after the last step; nothing deletes it."""
        return self.last is not None

    @property
    def text(self) -> str:
        text: str = self.run(self.server.text())
        return text

    @text.setter
    def text(self, text: str) -> None:
        self.run(self.server.write_text(text))

    @property
    def document(self) -> dict[str, Any]:
        document: dict[str, Any] = self.run(self.server.read())
        return document

    @document.setter
    def document(self, document: dict[str, Any]) -> None:
        self.run(self.server.write(document))

    def new_store(self) -> ClaimStore:
        return claim_store(self.ctx)

    async def loaded(self, store: ClaimStore) -> None:
        """Read the claims, as the new owner of a worker does; without a ConfigMap the worker has no labs either."""
        await store.load()
        if not store.complete:
            store.recover(())

    def leave_nothing_behind(self) -> None:
        """Let one writer that begins afresh release everything: only other people's rows are left."""
        self.server.api.heal()
        store = self.new_store()
        self.run(self.loaded(store))
        assert {uid for uid in self.labs if uid not in store.claims} == set()
        for uid in list(store.claims):
            store.drop(uid)
        self.run(self.flushed(store))
        if self.run(self.server.found()) is not None:
            assert self.document["portClaims"] == self.foreign
            assert self.document["lablets"] == []
        assert len(store.ports) == len(self.foreign)

    # ---------------------------------------------------------------------------------------- what a lablet does

    @rule(writer=writers, names=slots, again=picks)
    def claim(self, writer: int, names: list[str], again: int) -> None:
        """Claim for a new Pod, or for one that this writer does not know to be claimed."""
        store = self.stores[writer]
        unknown = [uid for uid in self.known() if uid not in store.claims and uid not in self.ended]
        if unknown and again % 2:
            uid = unknown[again % len(unknown)]
        else:
            self.pods += 1
            uid = f"{self.pods:08}-pod"
        wanted = [RequestedPort(name, UDP if is_udp(name) else TCP) for name in names]
        free = {
            protocol: sum(not store.ports.mask(protocol) >> port & 1 for port in range(HERE.start, HERE.end + 1))
            for protocol in (TCP, UDP)
        }
        try:
            ports = store.allocate(wanted, HERE, per_instance_max=3, rest_s=60, pod_uid=uid)
        except InputError as refused:
            ports, reason = {}, str(refused.reason)
        else:
            reason = ""
        if reason:
            full = any(free[p] < sum(slot.protocol == p for slot in wanted) for p in free)
            assert (reason == "TooManyPorts") == (len(names) > 3)
            assert reason == "TooManyPorts" or full
            return
        udp_names = tuple(name for name in names if is_udp(name))
        store.put(Claim(uid, "team", f"pod-{uid}", "netlab", "d", "1", "x", ports=ports, udp=udp_names))

    def known(self) -> list[str]:
        return sorted({uid for store in self.stores for uid in store.claims} | self.labs.keys())

    @rule(writer=writers)
    def import_labs(self, writer: int) -> None:
        """Make a lab of every saved row, as the steps do; one that is there already is found."""
        store = self.stores[writer]
        for uid, row in list(store.claims.items()):
            if store.saved(uid) and not row.lab_id and uid not in self.ended:
                ports = {(slot.protocol, slot.port) for slot in row.held}
                assert self.labs.setdefault(uid, ports) == ports, "its lab has other ports"
                others = [port for other, taken in self.labs.items() if other != uid for port in taken]
                assert ports.isdisjoint(others), "a port has two owners"
                store.put(msgspec.structs.replace(row, lab_id=f"lab-{uid}"), lazy=True)

    @rule(writer=writers, names=slots)
    def begin(self, writer: int, names: list[str]) -> None:
        """Claim, save and import in one go, as it mostly happens."""
        self.claim(writer, names, 0)
        self.flush(writer)
        self.import_labs(writer)

    @rule(writer=writers, pick=picks)
    def release(self, writer: int, pick: int) -> None:
        """The Pod is gone and its lab is confirmed absent: its row goes."""
        store = self.stores[writer]
        if not store.claims:
            return
        uid = list(store.claims)[pick % len(store.claims)]
        self.ended.add(uid)
        self.labs.pop(uid, None)
        store.drop(uid)

    # ---------------------------------------------------------------------------------------- what a writer does

    async def flushed(self, store: ClaimStore) -> None:
        while await store.flush(hurry=True) is not None:
            pass

    @rule(writer=writers)
    def flush(self, writer: int) -> None:
        store = self.stores[writer]
        pending = any(not store.saved(uid) for uid in [*store.claims, *self.ended])
        answer = self.outcome(self.flushed(store))
        if isinstance(answer, InputError):
            assert answer.reason == "ClaimStoreInvalid"
            assert "remove the row" in answer.message
        if answer is not None:
            return
        assert all(store.saved(uid) for uid in store.claims)
        if pending:
            held = {(row["protocol"], row["port"]) for row in self.document["portClaims"]}
            assert held == set(store.ports.holders)

    @rule(writer=writers)
    def restart(self, writer: int) -> None:
        """Forget whatever is not written."""
        store = self.new_store()
        self.run(self.loaded(store))
        self.stores[writer] = store

    @rule()
    def lose_an_answer(self) -> None:
        self.server.lose_an_answer()

    # ---------------------------------------------------------------------------------------- what people do

    @precondition(lambda self: self.exists)
    @rule(writer=writers, how=st.sampled_from(["text", "twice", "schema", "worker", "rows"]))
    def spoil(self, writer: int, how: str) -> None:
        """Make the document one that must not be used, see that it is not, and put it right again."""
        self.server.api.heal()  # a lost answer would hide why the write is refused
        good, found = self.text, self.document
        match how:
            case "twice" if found["portClaims"]:
                found["portClaims"].append(found["portClaims"][0])
            case "schema":
                found["schemaVersion"] = 2
            case "worker":
                found["worker"]["name"] = "w2"
            case "rows":
                found["portClaims"].append({"namespace": "app"})
            case _:
                found["lablets"] = "{"
        self.document = found
        spoiled, store, before = self.text, self.stores[writer], dict(self.stores[writer].claims)
        if any(not store.saved(uid) for uid in store.claims):
            answer = self.outcome(self.flushed(store))
            assert isinstance(answer, InputError)
            assert answer.reason == "ClaimStoreInvalid"
            assert store.fault is answer
        assert isinstance(self.outcome(self.loaded(self.new_store())), InputError)
        assert (self.text, store.claims) == (spoiled, before)
        self.text = good

    @precondition(lambda self: self.exists)
    @rule(port=st.integers(HERE.start, HERE.end), udp=st.booleans())
    def reserve(self, port: int, udp: bool) -> None:  # noqa: FBT001 (Hypothesis calls it)
        """Reserve a port by hand, one that is free in the document."""
        found, protocol = self.document, UDP if udp else TCP
        taken = {(row["protocol"], row["port"]) for row in found["portClaims"]}
        if (protocol, port) in taken or len(self.foreign) == 4:
            return
        row: dict[str, Any] = {"namespace": "app", "service": "api", "portName": f"p{len(self.foreign)}"}
        row |= {"protocol": protocol, "port": port, "source": "static"}
        self.foreign.append(row)
        self.document = {**found, "portClaims": [*self.foreign, *found["portClaims"][len(self.foreign) - 1 :]]}

    @precondition(lambda self: self.exists and not self.foreign)
    @rule()
    def make_it_old(self) -> None:
        """Leave nothing but allocations, as old writers did."""
        found = self.document
        del found["portClaims"]
        self.document = found
        self.migrate()

    @precondition(lambda self: self.exists)
    @rule(pick=picks)
    def lose_a_row(self, pick: int) -> None:
        """Remove a lablet's row, but not those of its ports; a writer that begins afresh keeps them."""
        found = self.document
        rows = [row for row in found["lablets"] if row["podUID"] not in self.labs]
        if rows:
            row = rows[pick % len(rows)]
            found["lablets"].remove(row)
            self.document = found
            store = self.new_store()
            self.run(self.loaded(store))
            held = {(row["protocol"], row["port"]) for row in found["portClaims"]}
            assert held == set(store.ports.holders)
            wanted = [
                RequestedPort(port["portName"], port["protocol"])
                for port in found["portClaims"]
                if port.get("podUID") == row["podUID"][:8]
            ]
            ports = store.allocate(wanted, HERE, per_instance_max=5, rest_s=60, pod_uid=row["podUID"])
            udp = tuple(slot.name for slot in wanted if slot.protocol == UDP)
            store.put(msgspec.structs.replace(msgspec.convert(row, Claim), ports=ports, udp=udp))
            self.server.api.heal()
            self.run(self.flushed(store))
            assert {(row["protocol"], row["port"]) for row in self.document["portClaims"]} == held

    def migrate(self) -> None:
        """A writer that begins afresh reads old state and writes claims."""
        before = self.document["allocations"]
        store = self.new_store()
        self.run(self.loaded(store))
        store.put(Claim("99999999-x", "team", "extra", "netlab", "d", "1", "x"))
        self.server.api.heal()
        self.run(self.flushed(store))
        store.drop("99999999-x")
        self.run(self.flushed(store))
        after = [{k: v for k, v in row.items() if k != "podUID"} for row in self.document["portClaims"]]
        assert sorted(map(json.dumps, after)) == sorted(map(json.dumps, before))

    # ---------------------------------------------------------------------------------------- what must always hold

    @invariant()
    def no_port_of_a_lab_is_lost(self) -> None:
        self.steps += 1
        self.last = self.run(self.server.found()) if hasattr(self, "server") else None
        if self.last is not None:
            found = json.loads(self.last["data"][KEY])
            claimed = {(row["service"], row["protocol"], row["port"]) for row in found["portClaims"]}
            for uid, ports in self.labs.items():
                assert {(f"pod-{uid}", *port) for port in ports} <= claimed
            assert [row for row in found["portClaims"] if row["namespace"] == "app"] == self.foreign

    @invariant()
    def every_store_is_true_to_its_rows(self) -> None:
        for store in getattr(self, "stores", ()):
            mine = {(slot.protocol, slot.port): uid for uid, row in store.claims.items() for slot in row.held}
            assert len(mine) == sum(len(row.held) for row in store.claims.values())
            held = {key: holder.owner for key, holder in store.ports.holders.items()}
            assert mine.items() <= held.items()
            assert all(store.ports.mask(protocol) >> port & 1 for protocol, port in held)


def test_no_port_has_two_owners_and_no_claim_is_lost(apiserver: ApiServer) -> None:
    World.apiserver = apiserver
    run_state_machine_as_test(
        World,
        settings=settings(
            max_examples=-(-STEPS // STEPS_EACH),
            stateful_step_count=STEPS_EACH,
            derandomize="CLAIM_STEPS" not in os.environ,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
