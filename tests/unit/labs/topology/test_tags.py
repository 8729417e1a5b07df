"""Port tags: which texts ask for a port, for what, and that only the outside port changes."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vkprovider.lablet.ports import PortTag, fault, parse_tag, span_of, suspect

numbers = st.integers(0, 999_999_999).map(str)
insides = st.integers(1, 65535).map(str)


def with_outside(tag: PortTag, port: int) -> str:
    """Return the tag with another outside port, as a rendered topology has it."""
    start, end = span_of(tag.text)
    return f"{tag.text[:start]}{port}{tag.text[end:]}"


port_tags = st.one_of(
    st.tuples(st.sampled_from(["serial", "vnc", "http", "https", "ssh", "telnet", "tcp"]), numbers).map(":".join),
    st.tuples(st.just("serial"), numbers, st.integers(0, 9).map(str)).map(":".join),
    st.tuples(st.sampled_from(["pat", "pat:tcp", "pat:udp"]), numbers, insides).map(":".join),
)


@pytest.mark.parametrize(
    ("text", "tag", "access"),
    [
        ("serial:5065", PortTag("serial", "tcp", 5065, None, None, "serial:5065"), "serial"),
        ("serial:5065:0", PortTag("serial", "tcp", 5065, None, 0, "serial:5065:0"), "serial"),
        ("serial:5065:1", PortTag("serial", "tcp", 5065, None, 1, "serial:5065:1"), "serial1"),
        ("vnc:5066", PortTag("vnc", "tcp", 5066, None, None, "vnc:5066"), "vnc"),
        ("pat:5067:22", PortTag("pat", "tcp", 5067, 22, None, "pat:5067:22"), "pat22"),
        ("pat:tcp:5067:22", PortTag("pat", "tcp", 5067, 22, None, "pat:tcp:5067:22"), "pat22"),
        ("pat:udp:5067:53", PortTag("pat", "udp", 5067, 53, None, "pat:udp:5067:53"), "patudp53"),
        ("http:8080", PortTag("http", "tcp", 8080, None, None, "http:8080"), "http"),
        ("https:8443", PortTag("https", "tcp", 8443, None, None, "https:8443"), "https"),
        ("ssh:22", PortTag("ssh", "tcp", 22, None, None, "ssh:22"), "ssh"),
        ("telnet:23", PortTag("telnet", "tcp", 23, None, None, "telnet:23"), "telnet"),
        ("tcp:99", PortTag("tcp", "tcp", 99, None, None, "tcp:99"), "tcp"),
        ("serial:0", PortTag("serial", "tcp", 0, None, None, "serial:0"), "serial"),
        ("serial:070000", PortTag("serial", "tcp", 70000, None, None, "serial:070000"), "serial"),
    ],
)
def test_a_port_tag_is_read(text: str, tag: PortTag, access: str) -> None:
    """R000-049 to R000-052, R000-064, R001-004, R001-006, C18, C21: what an author writes outside is a placeholder."""
    assert parse_tag(text) == tag
    assert tag.access == access


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hidden",
        "core",
        "serial",
        "serial:",
        "serial:x",
        "serial:-1",
        "serial: 5041",
        " serial:5041",
        "serial:5041\n",
        "serial:٥٠٤١",
        "serial:5041:1:2",
        "serial:1234567890",
        "Serial:5041",
        "myserial:5041",
        "vnc:5042:1",
        "http:80:80",
        "pat:5003",
        "pat:icmp:5003:22",
        "pat:tcp:5003",
        "rdp:3389",
        "5041",
    ],
)
def test_another_tag_is_an_ordinary_one(text: str) -> None:
    """R001-007, R001-008."""
    assert parse_tag(text) is None
    assert fault(text) is None
    with pytest.raises(ValueError, match="is not a port tag"):
        span_of(text)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("pat:abc:22", "pat:PORT:INSIDE"),
        ("pat:5043", "pat:PORT:INSIDE"),
        ("pat:icmp:5003:22", "pat:PORT:INSIDE"),
        ("serial:x", "serial:PORT"),
        ("Serial:5041", "serial:PORT"),
        ("serial: 5041", "serial:PORT"),
        ("seriel:5041", "serial:PORT"),
        ("vnc:5042:1", "vnc:PORT"),
        ("htpps:443", "https:PORT"),
        ("tcp:80:80", "tcp:PORT"),
        ("serial2005", "serial:PORT"),
        ("serial 5041", "serial:PORT"),
        ("Serial-5041", "serial:PORT"),
        ("serial_5041:1", "serial:PORT"),
        ("seriel5041", "serial:PORT"),
        ("vnc;5901", "vnc:PORT"),
        ("pat5043:22", "pat:PORT:INSIDE"),
        ("https8443", "https:PORT"),
    ],
)
def test_a_misspelt_port_tag_is_suspect(text: str, meant: str) -> None:
    assert suspect(text).startswith(meant)


@pytest.mark.parametrize(
    "text",
    [
        *("", "hidden", "core", "serial", "rdp:3389", "site:5", "role:core1", "tcp:internal", "user:7", "part:3"),
        *("http2", "serial1", "pat-22", "server2000", "site1000", "rack-120", "year2026", "tcp123456", "as65000"),
    ],
)
def test_an_author_s_own_tag_is_not(text: str) -> None:
    assert suspect(text) == ""


@given(port_tags)
def test_nor_is_a_tag_that_requests_a_port(text: str) -> None:
    assert suspect(text) == ""


@pytest.mark.parametrize("text", ["pat:5003:0", "pat:tcp:5003:65536", "pat:udp:5003:999999999"])
def test_a_way_to_a_port_that_no_device_has_is_a_fault(text: str) -> None:
    assert parse_tag(text) is None
    assert "ports are 1 to 65535" in str(fault(text))


@pytest.mark.parametrize(
    ("text", "port", "rewritten"),
    [
        ("serial:5065", 10011, "serial:10011"),
        ("vnc:5066", 10012, "vnc:10012"),
        ("pat:5067:22", 10013, "pat:10013:22"),
        ("pat:udp:5067:5067", 10013, "pat:udp:10013:5067"),
        ("serial:1:1", 20000, "serial:20000:1"),
        ("http:80", 10000, "http:10000"),
    ],
)
def test_only_the_outside_port_changes(text: str, port: int, rewritten: str) -> None:
    """R000-051, R000-056."""
    tag = parse_tag(text)
    assert tag is not None
    assert with_outside(tag, port) == rewritten


@given(port_tags, st.integers(1, 65535))
@example("pat:22:22", 10011)
def test_a_rewritten_tag_asks_for_the_same_at_another_port(text: str, port: int) -> None:
    tag = parse_tag(text)
    assert tag is not None
    assert tag.text == text
    again = parse_tag(with_outside(tag, port))
    assert again is not None
    assert again.outside == port
    assert (again.access, again.protocol, again.inside, again.line) == (tag.access, tag.protocol, tag.inside, tag.line)
