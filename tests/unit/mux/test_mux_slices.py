"""What carries the backends of a mux: names, bodies, and when one is written again."""

import msgspec
import pytest

from tests.unit.mux.builders import PREFIX, REF, after, channel, lablet, mux
from vkprovider.mux.pure.endpoints import Backends
from vkprovider.mux.pure.facts import MuxRef, Owner, ServicePort
from vkprovider.mux.pure.slices import (
    MuxObject,
    Source,
    collect_sources,
    differs,
    endpoints_differ,
    is_ours,
    wanted_endpoints,
    wanted_slices,
)
from vkprovider.platform.objects import EndpointSlice

MUX = MuxObject(REF, "uid-1", PREFIX)
API = Owner("app", "api")


def source(
    *ready: str,
    name: str = "api-x",
    not_ready: tuple[str, ...] = (),
    leaving: tuple[str, ...] = (),
    port: str = "http",
) -> Source:
    return Source(name, "IPv4", Backends((ServicePort(port, 8080),), ready, not_ready, leaving))


def as_found(body: object) -> EndpointSlice:
    return msgspec.convert(body, EndpointSlice)


def test_only_mapped_ports_of_accepted_channels_are_carried() -> None:
    plan = after(mux(), [channel("app/api", "http:auto"), channel("app/odd", "http:many")])
    found = {API: [source("10.1.0.1"), source("10.1.0.2", port="other")], Owner("app", "odd"): [source("10.1.0.3")]}
    sources = collect_sources(plan, found)
    assert list(sources) == [API]
    [only] = sources[API]
    assert only.backends.ready == ("10.1.0.1",)
    assert only.backends.ports == (ServicePort(API.mux_port_name("http"), 8080),)
    [body] = wanted_slices(MUX, sources).values()
    assert as_found(body).metadata.labels["kubernetes.io/service-name"] == REF.name
    assert is_ours(as_found(body))


def test_a_slice_that_is_as_it_should_be_is_not_written_again() -> None:
    sources = {API: [source("10.1.0.1", not_ready=("10.1.0.2",))]}
    [body] = wanted_slices(MUX, sources).values()
    assert not differs(as_found(body), body)
    for changed in (
        {API: [source("10.1.0.9", not_ready=("10.1.0.2",))]},
        {API: [source("10.1.0.1", "10.1.0.2")]},
        {API: [source("10.1.0.1", not_ready=("10.1.0.2",), port="other")]},
    ):
        [other] = wanted_slices(MUX, changed).values()
        assert other["metadata"]["name"] == body["metadata"]["name"]
        assert differs(as_found(body), other)
    [other] = wanted_slices(MUX, {API: [source("10.1.0.1", leaving=("10.1.0.2",))]}).values()
    assert not differs(as_found(other), other)
    assert differs(as_found(body), other), "it still serves"
    [adopted] = wanted_slices(MUX._replace(uid="uid-2"), sources).values()
    assert differs(as_found(body), adopted), "the Service was made again"


def test_every_channel_learner_and_slice_has_a_name_of_its_own() -> None:
    learners = [lablet("app/api", learner).owner for learner in ("", "a", "b")]
    sources = {owner: [source("10.1.0.1"), source("10.1.0.1", name="api-y")] for owner in (API, *learners)}
    wanted = wanted_slices(MUX, sources)
    assert len(wanted) == 8
    others = wanted_slices(MuxObject(MuxRef("svc-mux", "m" * 63), "u", PREFIX), sources)
    assert not wanted.keys() & others.keys()
    assert all(len(name) <= 63 for name in others)


@pytest.mark.parametrize("split", [False, True])
def test_endpoints_are_compared_by_what_they_say(split: bool) -> None:  # noqa: FBT001 (a table)
    wanted = wanted_endpoints(MUX, {API: [source("10.1.0.1", "10.1.0.2")]})
    found = {"metadata": wanted["metadata"], "subsets": wanted["subsets"]}
    if split:
        [subset] = wanted["subsets"]
        found["subsets"] = [{**subset, "addresses": [address]} for address in subset["addresses"][::-1]]
    assert not endpoints_differ(found, wanted)
    assert endpoints_differ(found, wanted_endpoints(MUX, {API: [source("10.1.0.1")]}))
    assert endpoints_differ({**found, "subsets": None}, wanted)
    assert endpoints_differ({**found, "metadata": {"name": "mux"}}, wanted)
