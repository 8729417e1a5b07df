"""Where each learner begins, by a link and by ports."""

import pytest

from vkprovider.classroom.handout import HandOutRow, as_csv, lab_link, lablet_link, ways_in
from vkprovider.lablet.devices import Port


def port(address: str = "198.51.100.1", *, via: str = "", opened: bool = True) -> Port:
    return Port("r1_serial", "r1", "serial", address, 2000, "r1", 4001, None, "tcp", opened=opened, via=via)


@pytest.mark.parametrize(
    ("found", "ways"),
    [
        (port(), ["r1 serial 198.51.100.1:2000"]),
        (port("2001:db8::1"), ["r1 serial [2001:db8::1]:2000"]),
        (port(via="203.0.113.9:29000"), ["r1 serial 203.0.113.9:29000"]),
        (port(via="pending: no port is free"), ["r1 serial 198.51.100.1:2000"]),
        (port(opened=False), []),
        (port(""), []),
    ],
)
def test_each_port_has_the_one_address_to_use(found: Port, ways: list[str]) -> None:
    assert ways_in([found]) == ways


def test_a_link_has_any_name_and_is_left_out_without_a_portal() -> None:
    assert lab_link("https://l.example", "a/b?c@d") == "https://l.example/labs/a%2Fb%3Fc%40d"
    assert lablet_link("https://l.example/x/", "friday", "warm-1") == "https://l.example/x/lablets/friday/warm-1"
    assert (lab_link("", "ann"), lablet_link("", "friday", "warm-1")) == ("", "")


def test_a_file_for_a_spreadsheet_computes_nothing() -> None:
    ports = ("r1 serial a:1", "r2 serial a:2")
    rows = [HandOutRow("=ann", "warm-1", "https://l.example/labs/%3Dann", "", ports, "@SUM(1)")]
    assert as_csv(rows, "friday").splitlines() == [
        "learner,name,lablet,class,link,until,ports",
        "'=ann,'@SUM(1),warm-1,friday,https://l.example/labs/%3Dann,,r1 serial a:1; r2 serial a:2",
    ]
