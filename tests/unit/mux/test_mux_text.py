"""The backends of a mux, and what people read on it."""

import json

import pytest

from tests.unit.mux.builders import PREFIX, REF, after, channel, lablet, mux
from vkprovider.mux.effects import reports
from vkprovider.mux.index import Service, slim_service
from vkprovider.mux.pure.endpoints import Backends, collect_mux_endpoints, ready_addresses
from vkprovider.mux.pure.facts import Owner, ServicePort
from vkprovider.platform.objects import Metadata

HTTP, GRPC = ServicePort("http", 8080), ServicePort("grpc", 9090)
API = Owner("app", "api")
PLAN = after(mux(), [channel("app/api", "http:auto,grpc:auto", HTTP, GRPC), lablet("class-1/lab-0", "ann")])
FOUND = {
    API: [
        Backends((ServicePort("http", 8081), ServicePort("grpc", 9090)), ("10.0.0.1", "10.0.0.2"), ("10.0.0.3",)),
        Backends((ServicePort("metrics", 9100),), ("10.0.0.1",)),
        Backends((ServicePort("http", 8081),)),
        Backends((ServicePort("grpc", 9090),), (), ("10.0.0.4",)),
    ],
    Owner("app", "refused"): [Backends((HTTP,), ("10.0.0.9",))],
}
ADDRESS = "203.0.113.10"


def test_backends_have_the_names_of_the_mux() -> None:
    """R003-054, R003-055: number and protocol are the backend's; a channel without ports forwards nothing."""
    http, grpc = API.mux_port_name("http"), API.mux_port_name("grpc")
    both = (ServicePort(http, 8081), ServicePort(grpc, 9090))
    collected = collect_mux_endpoints(PLAN, FOUND)
    assert collected == {
        API: (
            Backends(both, ("10.0.0.1", "10.0.0.2"), ("10.0.0.3",)),
            Backends(both[1:], (), ("10.0.0.4",)),
        )
    }
    assert ready_addresses(collected[API]) == 2
    assert collect_mux_endpoints(after(mux(), []), FOUND) == {}, "also when it was the last one"


def test_channel_says_which_port_is_which() -> None:
    """R003-027: the example of the controller design."""
    assert reports.format_ports_annotation(PLAN.mapped[API]) == "http:8080->20000, grpc:9090->20001"


def test_what_a_channel_says_is_read_again() -> None:
    """R003-044: where the store is lost and the mux was applied again without ports."""
    told = reports.format_ports_annotation(PLAN.mapped[API])
    again = channel("app/api", "http:auto,grpc:auto", HTTP, GRPC, told=told)
    plan = after(mux(), [channel("app/aaa", "http:auto"), again])
    assert reports.format_ports_annotation(plan.mapped[API]) == told


def test_mux_says_what_it_carries() -> None:
    """R003-062, R003-063."""
    backends = collect_mux_endpoints(PLAN, FOUND)
    assert reports.format_summary_annotation(PLAN, backends, ADDRESS) == (
        "2 channel(s) | 3 port(s) | 2 pod(s) | DNS: 203.0.113.10"
    )
    assert json.loads(reports.format_channels_annotation(PLAN)) == ["app/api", "class-1/lab-0"]
    assert reports.format_topology_annotation(REF, PLAN, backends, reports.dns_hint([], []), {}).splitlines() == [
        "svc-mux/mux | DNS: pending",
        "  app/api | DNS: api.app.svc | 2 pod(s)",
        "    http:8080->20000/TCP",
        "    grpc:9090->20001/TCP",
        "  class-1/lab-0 | lablet",
        "    PC_serial:10011->20002/TCP",
    ]


def test_topology_of_many_channels_is_cut_with_their_number() -> None:
    slots = [f"router-{n}_serial" for n in range(5)]
    channels = [lablet(f"a-namespace-of-a-class/a-long-name-of-a-pod-{n:04}", "ann", *slots) for n in range(480)]
    many = after(mux("20000-29999"), channels)
    told = reports.format_topology_annotation(REF, many, {}, ADDRESS, {})
    assert len(told) <= reports.TOPOLOGY_CHARS_MAX + 40
    shown = sum(line.endswith("| lablet") for line in told.splitlines())
    assert 100 < shown < len(many.mapped)
    assert told.endswith(f"  and {len(many.mapped) - shown} more channel(s)\n")
    assert "learner" not in told


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        ("labs.example.com", ["labs.example.com"]),
        (" a.example.com., *.b.example.com", ["a.example.com", "*.b.example.com"]),
        ("labs.example.com\n  app/forged | DNS: x.example.com", []),
        ("localhost,203.0.113.9,-a.example.com," + "a." * 130 + "com,", []),
    ],
)
def test_names_of_external_dns_are_names_or_nothing(asked: str, names: list[str]) -> None:
    """R003-063: owners of channels write them, and all who see the mux read them."""
    notes = {"external-dns.alpha.kubernetes.io/hostname": asked, "other": "x"}
    service = Service(Metadata("mux", "edge", annotations={f"{PREFIX}/multiplexer": "true", **notes}))
    assert slim_service(service, PREFIX).external_names == names
