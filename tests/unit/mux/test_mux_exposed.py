"""Lablets as channels of a mux."""

from tests.unit.mux.builders import NOW, PREFIX
from tests.unit.mux.builders import mux as a_mux
from vkprovider.lablet import exposure
from vkprovider.lablet.exposure import Exposure
from vkprovider.mux.pure.decide import decide
from vkprovider.mux.pure.endpoints import backends_of, channel_of, collect_mux_endpoints, mux_of
from vkprovider.mux.pure.facts import MuxRef, Owner
from vkprovider.mux.pure.state import MuxState

SLOTS = [("r1, core: a_serial", "TCP", 10011), ("r1_core__a_serial", "UDP", 10012)]
LABLET = Exposure("w", "labs.edge", "class", "pod-0", "u", "ann", "198.51.100.1", exposure.ports_of(SLOTS))


def test_a_lablet_asks_for_any_port_for_each_of_its_slots_whatever_their_names() -> None:
    channel = channel_of(LABLET, PREFIX)
    plan = decide(a_mux("20000-20009"), [channel], MuxState(), NOW, prefix=PREFIX)
    assert not plan.refused
    assert channel.owner == Owner("class", "pod-0", "ann")
    [collected] = collect_mux_endpoints(plan, {channel.owner: [backends_of(LABLET)]})[channel.owner]
    assert {(port.port, port.protocol) for port in collected.ports} == {(10011, "TCP"), (10012, "UDP")}
    assert collected.ready == ("198.51.100.1",)


def test_the_mux_of_a_lablet_is_in_the_namespace_that_its_definition_names_or_in_the_default_one() -> None:
    assert mux_of(LABLET, PREFIX, "svc-mux") == MuxRef("edge", "labs")
    assert mux_of(Exposure("w", "labs", "a", "p", "u", "", "::1", ()), PREFIX, "svc-mux") == MuxRef("svc-mux", "labs")
