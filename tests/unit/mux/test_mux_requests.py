"""Which Service is a mux or a channel, and the outside ports that a channel asks for."""

import doctest
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vkprovider.mux.pure import facts, requests
from vkprovider.mux.pure.facts import Channel, Mux, MuxRef, Owner, ServicePort
from vkprovider.mux.pure.muxnames import MuxReason
from vkprovider.mux.pure.requests import PortLimit, PortRequest
from vkprovider.platform.errors import InputError
from vkprovider.platform.ports.allocator import PortBounds

PREFIX = "svc-mux.nowake.ai"
MUX = MuxRef("svc-mux", "mux")
LABEL = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,9}[a-z0-9])?", fullmatch=True)


def channel(ports: list[ServicePort], **annotations: str) -> Channel:
    named = {f"{PREFIX}/{key.replace('_', '-')}": text for key, text in annotations.items()}
    return Channel(Owner("app", "api"), tuple(ports), named)


@pytest.mark.parametrize("module", [facts, requests])
def test_examples_of_the_docstrings_hold(module: object) -> None:
    assert doctest.testmod(module) == (0, {facts: 3, requests: 2}[module])  # type: ignore[arg-type, index]


@pytest.mark.parametrize(
    ("class_", "expected"),
    [
        ("svc-mux.nowake.ai/mux", MuxRef("edge", "mux")),
        ("svc-mux.nowake.ai/mux.svc-mux", MuxRef("svc-mux", "mux")),
        ("svc-mux.nowake.ai/1", MuxRef("edge", "1")),
    ],
)
def test_class_names_a_mux(class_: str, expected: MuxRef) -> None:
    """R003-013, R003-006."""
    assert facts.get_mux_from_lb_class(class_, PREFIX, "edge") == expected


@pytest.mark.parametrize(
    "class_",
    [
        "svc-mux.nowake.ai",
        "svc-mux.nowake.ai/",
        "svc-mux.nowake.ai/.svc-mux",
        "svc-mux.nowake.ai/mux.",
        "svc-mux.nowake.ai/mux.a.b",
        "svc-mux.nowake.ai/a/b",
        "svc-mux.nowake.ai/Mux",
        "svc-mux.nowake.ai/-mux",
        "svc-mux.nowake.ai/mux\n",
        "svc-mux.nowake.ai/" + "m" * 64,
        "networking.gke.io/mux",
        "",
    ],
)
def test_class_that_names_none_is_refused(class_: str) -> None:
    """R003-014."""
    with pytest.raises(InputError) as caught:
        facts.get_mux_from_lb_class(class_, PREFIX, "edge")
    assert caught.value.reason is MuxReason.INVALID_LOAD_BALANCER_CLASS
    assert "svc-mux.nowake.ai/MUX.NAMESPACE" in caught.value.message


def test_a_foreign_class_is_no_channel() -> None:
    """R003-013."""
    assert facts.names_a_mux("svc-mux.nowake.ai/", PREFIX)
    assert not facts.names_a_mux("svc-mux.nowake.aid/mux", PREFIX)


@given(LABEL, LABEL, LABEL)
def test_every_name_of_a_service_comes_back(name: str, namespace: str, default: str) -> None:
    assert facts.get_mux_from_lb_class(f"{PREFIX}/{name}.{namespace}", PREFIX, default) == (namespace, name)
    assert facts.get_mux_from_lb_class(f"{PREFIX}/{name}", PREFIX, default) == (default, name)


def test_a_mux_is_marked_and_a_load_balancer_without_selector() -> None:
    """R003-010, R003-011."""
    assert facts.is_marked({"svc-mux.nowake.ai/multiplexer": "true"}, PREFIX)
    assert not facts.is_marked({"svc-mux.nowake.ai/multiplexer": "false"}, PREFIX)
    assert facts.unfit_for_mux("LoadBalancer", {}) is None
    wrong_type, selects = facts.unfit_for_mux("ClusterIP", {}), facts.unfit_for_mux("LoadBalancer", {"app": "x"})
    assert wrong_type is not None
    assert wrong_type.reason is MuxReason.NOT_LOAD_BALANCER
    assert selects is not None
    assert selects.reason is MuxReason.NOT_SUPPORTED


@pytest.mark.parametrize(
    ("allowed", "owner", "expected"),
    [
        (None, Owner("svc-mux", "api"), True),
        (None, Owner("app", "api"), False),
        (None, Owner("class-1", "pod", ""), True),
        ("", Owner("app", "api"), False),
        ("app", Owner("app", "api"), True),
        ("team, app", Owner("app", "api"), True),
        ("apps", Owner("app", "api"), False),
        ("*", Owner("app", "api"), True),
        ("app", Owner("svc-mux", "api"), True),
    ],
)
def test_namespaces_that_a_mux_serves(allowed: str | None, owner: Owner, *, expected: bool) -> None:
    assert facts.serves(MUX, allowed, owner) is expected


def test_port_is_the_same_outside_unless_the_annotation_says_otherwise() -> None:
    """R003-021, R003-022, R003-023: the examples of the controller design."""
    http, grpc = ServicePort("http", 80), ServicePort("grpc", 50051)
    assert requests.requests_of(channel([http]), PREFIX) == (PortRequest(http, 80),)
    asked = channel([http, grpc], external_ports="http:8080,grpc:9090")
    assert requests.requests_of(asked, PREFIX) == (PortRequest(http, 8080), PortRequest(grpc, 9090))
    asked = channel([http, grpc], external_ports=" http : auto ")
    assert requests.requests_of(asked, PREFIX) == (PortRequest(http, None), PortRequest(grpc, 50051))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("web:8080", "port 'web' is not in spec.ports, which has http"),
        ("http", "entry 'http' is not NAME:PORT"),
        ("http:8080,", "entry '' is not NAME:PORT"),
        (":8080", "entry ':8080' is not NAME:PORT"),
        ("http:", "entry 'http:' is not NAME:PORT"),
        ("http:8080,http:auto", "port 'http' is named twice"),
        ("http:0", "'0' is no port within 1-65535"),
        ("http:65536", "'65536' is no port within 1-65535"),
        ("http:-1", "'-1' is no port"),
        ("http:\uff18\uff10", "'\uff18\uff10' is no port"),
        ("http:80:81", "'80:81' is no port"),
        ("http:Auto", "'Auto' is no port"),
        ("http:" + "9" * 5000, "is no port"),
    ],
)
def test_wrong_annotation_is_refused_in_its_words(text: str, told: str) -> None:
    """R003-024, R003-026."""
    with pytest.raises(InputError) as caught:
        requests.requests_of(channel([ServicePort("http", 80)], external_ports=text), PREFIX)
    assert caught.value.reason is MuxReason.INVALID_PORT_MAPPING
    assert told in caught.value.message


def test_port_without_name_is_refused() -> None:
    """R003-015."""
    with pytest.raises(InputError) as caught:
        requests.requests_of(channel([ServicePort("http", 80), ServicePort("", 81)]), PREFIX)
    assert caught.value.fault.reason is MuxReason.INVALID_PORT
    assert caught.value.message == "port 81 of app/api has no name"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ()),
        ("20000-20099", (PortBounds(20000, 20099),)),
        ("21000-21010, 20000 - 20099", (PortBounds(21000, 21010), PortBounds(20000, 20099))),
        ("1-65535", (PortBounds(1, 65535),)),
        ("7-7", (PortBounds(7, 7),)),
        ("30000-30002, 31000", (PortBounds(30000, 30002), PortBounds(31000, 31000))),
    ],
)
def test_ranges_keep_their_order(text: str, expected: tuple[PortBounds, ...]) -> None:
    """R003-028."""
    assert requests.requested_port_range(text) == expected


@pytest.mark.parametrize("text", ["0", "65536", "20099-20000", "0-5", "1-65536", "a-b", "1-2,", "1-2;3", "-5", "1-2-3"])
def test_wrong_range_is_refused(text: str) -> None:
    with pytest.raises(InputError) as caught:
        requests.requested_port_range(text)
    assert caught.value.reason is MuxReason.INVALID_PORT_RANGE


GKE = "networking.gke.io/l4-regional-external"


@pytest.mark.parametrize(
    ("class_", "annotations", "asked", "ports", "told"),
    [
        ("", {}, None, None, ""),
        ("", {}, "500", 500, ""),
        (GKE, {}, None, 100, "annotation max-ports is missing"),
        (GKE, {}, "500", 100, "annotation max-ports is 500"),
        (GKE, {}, "100", 100, ""),
        (GKE, {}, "7", 7, ""),
        ("", {"cloud.google.com/l4-rbs": "enabled"}, None, 100, "annotation max-ports is missing"),
        ("", {"networking.gke.io/load-balancer-type": "Internal"}, None, 100, "annotation max-ports is missing"),
        ("", {"cloud.google.com/other": "x"}, None, None, ""),
    ],
)
def test_limit_of_a_mux(
    class_: str, annotations: dict[str, str], asked: str | None, ports: int | None, told: str
) -> None:
    """R003-048, R003-049."""
    if asked is not None:
        annotations = {**annotations, f"{PREFIX}/max-ports": asked}
    limit = requests.effective_mux_max_ports(Mux(MUX, annotations, class_), PREFIX)
    assert limit.ports == ports
    if told:
        assert limit.applied is not None
        assert limit.applied.reason is MuxReason.GKE_PORT_LIMIT_APPLIED
        assert told in limit.applied.message
    else:
        assert limit == PortLimit(ports)


@pytest.mark.parametrize("text", ["", "0", "-1", "ten", "1.5", "\uff11\uff10", "9" * 5000])
def test_wrong_limit_is_refused(text: str) -> None:
    """R003-050."""
    with pytest.raises(InputError) as caught:
        requests.effective_mux_max_ports(Mux(MUX, {f"{PREFIX}/max-ports": text}), PREFIX)
    assert caught.value.reason is MuxReason.INVALID_MAX_PORTS


def test_name_of_a_port_in_the_mux_is_a_hash() -> None:
    """R003-025. What is hashed for a lablet is never that of a Service, nor of another learner."""
    assert Owner("app", "api").mux_port_name("http") == hashlib.sha256(b"app/api/http").hexdigest()[:7]
    alike = [Owner("app", "api"), Owner("app", "api", ""), Owner("app", "api", "ann"), Owner("app", "api", "bob")]
    assert len({owner.mux_port_name("http") for owner in alike}) == len(alike)
    assert Owner("app", "api", "ann").mux_port_name("pc") == hashlib.sha256(b"app/api/pc/ann").hexdigest()[:7]
