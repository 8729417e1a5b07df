"""Versions that no new Pod may run are deleted, but never one that a claim names; on the real API server."""

import msgspec
import pytest

from tests.component.controllers.claimdocument import ClaimDocument
from tests.component.controllers.parts import Clock, claim_store, context
from tests.support.apiserver import CONFIG_MAPS, Admin
from tests.support.faultyapi import FaultyApi
from tests.support.topologies import topology
from vkprovider.lablet.models.definition import parse_definition_spec
from vkprovider.labs.content.parsing import shared_parser
from vkprovider.labs.controllers.definition.versions import Versions
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.definition.content import Content, build
from vkprovider.labs.pure.definition.package import Package
from vkprovider.labs.pure.topology.resources import SHIPPED, NodeDefinition, Resources
from vkprovider.platform.errors import InputError, OutsideError
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.objects import ConfigMap, CustomResource, Metadata
from vkprovider.platform.runtime.context import Context

TEXT = topology({"h0": "alpine"})
SPEC = parse_definition_spec({"version": "1", "source": {"inline": TEXT}, "keepVersions": 1})
RESOURCE = CustomResource(metadata=Metadata(name="netlab", uid="u1"))
CONTENT = CONFIG_MAPS + "?labelSelector=vkprovider.io%2Fcomponent%3Dcontent"
STAYS_S = 60.0
"""How long a version stays once no new Pod may name it."""


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ctx(real_kube: KubeClient, clock: Clock) -> Context:
    return context(real_kube, now=clock)


@pytest.fixture
async def versions(ctx: Context) -> Versions:
    """Three versions, of which new Pods may run the last."""
    versions = Versions(ctx, shared_parser(), list, SHIPPED, 50)
    for number in ("1", "2", "3"):
        await versions.adopt(RESOURCE, SPEC, Package(number, TEXT), "")
    return versions


async def old(versions: Versions) -> list[Content]:
    return (await versions.sort(RESOURCE, SPEC))[1]


async def stored(admin: Admin) -> set[str]:
    """Return the versions that are stored."""
    return {item["metadata"]["annotations"]["vkprovider.io/version"] for item in await admin.items(CONTENT)}


async def claim(ctx: Context, content: Content) -> None:
    """Write the claim of a lablet that runs a version."""
    store = claim_store(ctx)
    await store.load()
    store.recover([Claim("p1", "team", "pod-1", "netlab", "u1", content.version, content.digest)])
    while await store.flush(hurry=True) is not None:
        pass


async def test_old_versions_stay_for_a_minute_and_those_in_use_for_good(
    ctx: Context, admin: Admin, clock: Clock, versions: Versions
) -> None:
    dropped = await old(versions)
    assert {content.version for content in dropped} == {"1", "2"}
    await claim(ctx, next(content for content in dropped if content.version == "1"))
    assert await versions.drop(dropped) == STAYS_S
    clock.now += STAYS_S - 1
    assert await versions.drop(dropped) == pytest.approx(1)
    assert await stored(admin) == {"1", "2", "3"}
    clock.now += 1
    assert await versions.drop(await old(versions)) == STAYS_S
    assert await stored(admin) == {"1", "3"}
    assert {content.version for content in versions.of("netlab")} == {"1", "3"}


async def test_version_that_became_current_again_begins_its_minute_anew(
    admin: Admin, clock: Clock, versions: Versions
) -> None:
    await versions.drop(await old(versions))
    clock.now += STAYS_S
    await versions.adopt(RESOURCE, SPEC, Package("1", TEXT), "")
    dropped = await old(versions)
    assert {content.version for content in dropped} == {"2", "3"}
    await versions.drop(dropped)
    assert await stored(admin) == {"1", "3"}, "the second one is due, the third is not"
    await versions.adopt(RESOURCE, SPEC, Package("3", TEXT), "")
    assert await versions.drop(await old(versions)) == STAYS_S
    assert await stored(admin) == {"1", "3"}


async def test_nothing_is_deleted_while_the_claims_cannot_be_read(
    ctx: Context, admin: Admin, api: FaultyApi, clock: Clock, claims: ClaimDocument, versions: Versions
) -> None:
    dropped = await old(versions)
    await claim(ctx, dropped[0])
    await versions.drop(dropped)
    clock.now += STAYS_S
    whole = await claims.text()
    await claims.write_text("{not json")
    assert await versions.drop(dropped) == STAYS_S
    await claims.write_text(whole)
    api.fault("^GET .*configmaps", status=500)
    with pytest.raises(OutsideError):
        await versions.drop(dropped)
    assert await stored(admin) == {"1", "2", "3"}


async def test_content_of_an_earlier_release_stays_although_no_cml_imports_it_now(ctx: Context, admin: Admin) -> None:
    """A lablet may run it; only new content is refused."""
    doubled = TEXT.replace("version: 0.1.0", "version: 0.3.0").replace("id: n0", "id: 7")
    package = Package("1", doubled)
    versions = Versions(ctx, shared_parser(), list, SHIPPED, 50)
    with pytest.raises(InputError, match=r"nodes\[0\].id of 'h0' must be a text, not 7"):
        await versions.adopt(RESOURCE, SPEC, package, "")
    body = build(definition="netlab", uid="u1", namespace=ctx.namespace, package=package, sequence=1)
    await admin.create(CONFIG_MAPS, body)
    config_map = await ctx.api.config_maps.get(body["metadata"]["name"])
    assert config_map is not None
    after_restart = Versions(ctx, shared_parser(), lambda: [config_map], SHIPPED, 50)
    current = await after_restart.current(RESOURCE, SPEC)
    assert current is not None
    assert current.topology.faults


async def test_version_whose_price_is_unknown_after_a_restart_is_read_for_those_that_run_it(
    ctx: Context, admin: Admin
) -> None:
    """The only worker whose CML has a node definition went, and with it the figures in its status."""
    text = topology({"h0": "alpine", "fw": "acme-fw"}, {"fw": ["serial:4000"]})
    told = {**SHIPPED, "acme-fw": NodeDefinition(2, 4096)}
    content, _ = await Versions(ctx, shared_parser(), list, told, 50).adopt(RESOURCE, SPEC, Package("1", text), "")
    stored = msgspec.convert(await admin.items(CONTENT), list[ConfigMap])
    known = dict(SHIPPED)
    restarted = Versions(ctx, shared_parser(), lambda: stored, known, 50)
    assert await restarted.sort(RESOURCE, SPEC) == ([], []), "new Pods may not run it, and it is not to be deleted"
    assert restarted.contents[content.digest].topology == content.topology
    assert restarted.contents[content.digest].need == Resources(1000, 512 * 2**20, lab_nodes=2, ports=1)
    with pytest.raises(InputError, match="node definition 'acme-fw' is unknown"):
        await restarted.check_current(RESOURCE, SPEC)
    known.update(told)
    assert await restarted.sort(RESOURCE, SPEC) == ([content], [])
