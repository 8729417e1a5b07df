from ipaddress import ip_network

from tests.unit.mux.relay.muxes import endpoint_slice, port, service
from vkprovider.mux.relay.wanted import Backend, Goal, outside_of, wanted

A, B = Backend("192.0.2.7", 10003), Backend("192.0.2.8", 10003)


def test_a_port_leads_to_the_endpoint_of_its_name() -> None:
    mux = service(("bcaefde", 25001), ("0123abc", 25002))
    slices = [
        endpoint_slice([port("bcaefde", 10003)], "192.0.2.7"),
        endpoint_slice([port("0123abc", 10003), port("of-no-port", 9)], "192.0.2.8"),
    ]
    found = wanted(mux, slices)
    assert found.targets == {25001: A, 25002: B}
    assert found.allowed == {25001: {A}, 25002: {B}}


def test_udp_is_not_carried() -> None:
    mux = service(("a", 25001, "UDP"), ("b", 25002))
    slices = [endpoint_slice([port("a", 1, "UDP"), port("b", 10003)], "192.0.2.7")]
    assert wanted(mux, slices).targets == {25002: A}
    both = service(("a", 25001, "UDP"), ("b", 25001))
    crossed = [endpoint_slice([port("b", 1, "UDP"), port("a", 2)], "192.0.2.7")]
    assert wanted(both, crossed).targets == {}


def test_an_endpoint_that_is_not_ready_keeps_its_sessions_and_gets_no_new_one() -> None:
    found = wanted(service(("a", 25001)), [endpoint_slice([port("a", 10003)], "192.0.2.7", ready=False)])
    assert found.targets == {}
    assert found.allowed == {25001: {A}}
    unsaid = wanted(service(("a", 25001)), [endpoint_slice([port("a", 10003)], "192.0.2.7", ready=None)])
    assert unsaid.targets == {25001: A}


def test_an_endpoint_that_is_terminating_serves_where_none_is_ready() -> None:
    mux = service(("a", 25001))
    leaving = endpoint_slice([port("a", 10003)], "192.0.2.7", ready=False, serving=True, terminating=True)
    ready = endpoint_slice([port("a", 10003)], "192.0.2.8")
    assert wanted(mux, [leaving]).targets == {25001: A}
    assert wanted(mux, [leaving, ready]).targets == {25001: B}
    for serving, terminating in ((False, True), (True, False)):
        ends = port("a", 10003)
        other = endpoint_slice([ends], "192.0.2.7", ready=False, serving=serving, terminating=terminating)
        assert wanted(mux, [other]).targets == {}


def test_of_several_endpoints_the_first_is_taken_whatever_their_order() -> None:
    mux = service(("a", 25001))
    slices = [endpoint_slice([port("a", 10003)], "192.0.2.8"), endpoint_slice([port("a", 10003)], "192.0.2.7")]
    for order in (slices, slices[::-1]):
        assert wanted(mux, order).targets == {25001: A}
        assert wanted(mux, order).allowed == {25001: {A, B}}


def test_a_slice_without_a_number_an_address_or_an_ip_leads_nowhere() -> None:
    mux = service(("a", 25001))
    for odd in (
        endpoint_slice([port("a", None)], "192.0.2.7"),
        endpoint_slice([port("a", 10003)]),
        endpoint_slice(None, "192.0.2.7"),
        endpoint_slice([port("a", 10003)], "lab.example.com", kind="FQDN"),
    ):
        assert wanted(mux, [odd]).targets == {}
        assert wanted(mux, [odd]).allowed == {}


def test_the_only_port_of_a_service_needs_no_name() -> None:
    unnamed = endpoint_slice([{"port": 10003}], "192.0.2.7")
    assert wanted(service(("", 25001)), [unnamed]).targets == {25001: A}


def test_without_its_service_a_mux_admits_nobody_and_leads_nowhere() -> None:
    assert wanted(None, [endpoint_slice([port("a", 10003)], "192.0.2.7")]) == Goal({}, {}, frozenset())


def test_source_ranges_are_written_alike_and_none_admits_everybody() -> None:
    assert wanted(service(("a", 25001)), []).sources == {"0.0.0.0/0", "::/0"}
    given = service(("a", 25001), ranges=("10.1.2.3/8", " 198.51.100.7/32", "2001:DB8::/32"))
    assert wanted(given, []).sources == {"10.0.0.0/8", "198.51.100.7/32", "2001:db8::/32"}


def test_addresses_of_a_moved_network_are_dialled_elsewhere() -> None:
    moved = [
        (ip_network("198.51.100.1/32"), ip_network("127.5.0.11/32")),
        (ip_network("2001:db8::/64"), ip_network("fd00::/64")),
        (ip_network("198.18.0.0/16"), ip_network("127.9.0.0/16")),
    ]

    def dialled(address: str, kind: str = "IPv4") -> str:
        mux = service(("a", 25001))
        return wanted(mux, [endpoint_slice([port("a", 1)], address, kind=kind)], moved).targets[25001].address

    assert dialled("198.51.100.1") == "127.5.0.11"
    assert dialled("198.51.100.2") == "198.51.100.2"
    assert dialled("198.18.7.9") == "127.9.7.9"
    assert dialled("2001:db8::1:2", "IPv6") == "fd00::1:2"


def test_ports_on_which_nothing_listens_are_named() -> None:
    assert outside_of(25000, 25999, [26000, 25000, 25999, 80]) == [80, 26000]


def test_an_address_that_cannot_be_read_leads_nowhere_and_the_others_go_on() -> None:
    """Older API servers take leading zeros, of which nobody knows whether they are octal."""
    mux = service(("a", 25001), ("b", 25002))
    slices = [
        endpoint_slice([port("a", 10003)], "192.0.02.7"),
        endpoint_slice([port("b", 10003)], "192.0.2.7"),
        endpoint_slice([port("b", 1)], "fe80::1%x;del map ports.map"),
    ]
    found = wanted(mux, slices)
    assert found.targets == {25002: A}
    assert found.unread == ("192.0.02.7", "fe80::1%x;del map ports.map")


def test_a_source_range_that_cannot_be_read_admits_nobody() -> None:
    found = wanted(service(("a", 25001), ranges=("010.0.0.0/8", "198.51.100.0/24")), [])
    assert found.sources == {"198.51.100.0/24"}
    assert found.unread == ("010.0.0.0/8",)
    assert wanted(service(("a", 25001), ranges=("010.0.0.0/8",)), []).sources == frozenset()
    zoned = ("fe80::1%x;del map ports.map", "fe80::/64%eth0", "fe80::1%1/128")
    found = wanted(service(("a", 25001), ranges=(*zoned, "2001:db8::/32")), [])
    assert found.sources == {"2001:db8::/32"}
    assert set(found.unread) == {*zoned}
