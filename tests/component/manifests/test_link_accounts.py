"""A link per learner in the cluster: what one may write of it, what acts for it, how it ends. On a real API server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any, Final

import aiohttp
import pytest

from tests.component.controllers.looking import eventually
from tests.component.manifests.test_assignments import (
    ALICE,
    BOB,
    CLASS,
    CONFINED,
    NAMESPACES,
    OTHER,
    RBAC,
    READS,
    assign,
    assigner,
    binding,
    made_places,
    opens,
    role,
)
from tests.component.portal.harness import install
from tests.support.apiserver import SYSTEM, Admin, ApiServer
from vkprovider.classroom import access, links
from vkprovider.classroom.links import LinkAccount
from vkprovider.lablet import names
from vkprovider.platform.errors import Forbidden
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.resources import Resource

ACCOUNTS: Final = f"{NAMESPACES}/{CLASS}/serviceaccounts"
POLICY: Final = "ValidatingAdmissionPolicy 'vkprovider-links'"
PORTAL: Final = "ValidatingAdmissionPolicy 'vkprovider-confine-portal'"
LINK: Final = names.link_account(ALICE)
ACTING: Final = f"system:serviceaccount:{CLASS}:{LINK}"
Json = dict[str, Any]


async def allow(admin: Admin, value: str | None) -> None:
    await admin.patch(f"{NAMESPACES}/{CLASS}", {"metadata": {"labels": {names.LABEL_LINKS: value}}})


@pytest.fixture
async def places(admin: Admin) -> AsyncIterator[Admin]:
    async with made_places(admin):
        await allow(admin, names.LINKS_ALLOWED)
        yield admin
        await allow(admin, None)
        for found in await admin.items(ACCOUNTS):
            if found["metadata"]["name"] != "default":
                await admin.delete(f"{ACCOUNTS}/{found['metadata']['name']}")


@pytest.fixture
async def teacher(apiserver: ApiServer, places: Admin) -> AsyncIterator[KubeClient]:
    """The instructor's client, when the policy of links is in force and knows that links are allowed."""
    async with assigner(apiserver, places) as kube:

        async def limited() -> bool:
            try:
                await links.accounts_in(kube, CLASS).create({"metadata": {"name": "mine"}})
            except Forbidden as refused:
                return "vkprovider-links" in refused.message
            await places.delete(f"{ACCOUNTS}/mine")
            return False

        await eventually(limited, "the policy")
        yield kube


async def link_of(kube: KubeClient, learner: str) -> LinkAccount | None:
    return (await links.links_in(kube, CLASS)).get(learner)


async def given(kube: KubeClient, pod: str, learner: str) -> links.LinkRound:
    """Assign a lablet with a link, as `kubectl lablet assign --links` does."""
    found = await assign(kube, pod, learner)

    async def made() -> links.LinkRound | None:
        done = await links.make_links(kube, CLASS, [found])
        return None if done.faults else done  # a moment after the namespace got its label

    done = await eventually(made, "links are allowed")
    assert done is not None
    assert await access.open_access(kube, CLASS, [found, *done.left]) == ()
    return done


async def test_a_link_opens_what_the_learner_may_open(teacher: KubeClient, places: Admin) -> None:
    """No other lablet, and nothing else of this one."""
    done = await given(teacher, "one", ALICE)
    code = done.codes[ALICE]
    await eventually(lambda: opens(places, ACTING, "one"), "the link acts")
    stored = await link_of(teacher, ALICE)
    assert stored is not None
    assert stored.is_opened_by(code.digest)
    assert code.secret not in str(await places.get(f"{ACCOUNTS}/{LINK}"))
    assert not await opens(places, ACTING, "two")
    again = await given(teacher, "one", ALICE)
    assert (again.codes, again.kept) == ({}, (ALICE,))
    assert await link_of(teacher, ALICE) == stored, "a second run changes nothing"


async def test_a_link_goes_on_with_another_lablet(teacher: KubeClient, places: Admin) -> None:
    """The lablet is gone, and the learner gets another one, with or without the word `--links`."""
    code = (await given(teacher, "one", ALICE)).codes[ALICE]
    await places.delete(f"{NAMESPACES}/{CLASS}/pods/one", grace_s=0)
    assert await access.open_access(teacher, CLASS, [await assign(teacher, "two", ALICE)]) == ()
    await eventually(lambda: opens(places, ACTING, "two"), "the link leads there")
    there = await link_of(teacher, ALICE)
    assert there is not None
    assert (there.pod, there.is_opened_by(code.digest)) == ("two", True)
    # And to a third one while the second is still there, if somebody asks for it.
    await access.open_access(teacher, CLASS, [await assign(teacher, "three", ALICE)])
    there = await link_of(teacher, ALICE)
    assert there is not None
    assert there.pod == "two"
    assert (await given(teacher, "three", ALICE)).kept == (ALICE,)
    await eventually(lambda: opens(places, ACTING, "three"), "the link leads there")
    assert not await opens(places, ACTING, "two")
    assert await opens(places, ALICE, "two"), "the learner has both"


async def test_a_link_ends_with_the_learners_time(teacher: KubeClient, places: Admin) -> None:
    code = (await given(teacher, "one", ALICE)).codes[ALICE]
    await assign(teacher, "one", None)  # as the provider does, which then deletes the account itself
    await access.open_access(teacher, CLASS, [await assign(teacher, "two", BOB)])
    assert await link_of(teacher, ALICE) is None, "whoever assigns next has found it"
    new = (await given(teacher, "three", ALICE)).codes[ALICE]
    assert new.secret != code.secret
    there = await link_of(teacher, ALICE)
    assert there is not None
    assert not there.is_opened_by(code.digest)
    found = await places.get(f"{RBAC}/namespaces/{CLASS}/rolebindings/vkprovider-assigned:one")
    assert found is None


async def test_a_link_is_taken_back_and_made_again(teacher: KubeClient, places: Admin, apiserver: ApiServer) -> None:
    """A token of its account ends at once."""
    pod = await assign(teacher, "one", ALICE)
    code = (await given(teacher, "one", ALICE)).codes[ALICE]
    token = apiserver.kubectl("create", "token", LINK, f"--namespace={CLASS}").strip()
    connector = aiohttp.TCPConnector(ssl=apiserver.client_tls())
    headers = {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(apiserver.url, headers=headers, connector=connector) as http:

        async def status() -> int:
            async with http.get(f"{NAMESPACES}/{CLASS}/pods/one") as answer:
                return answer.status

        async def acts() -> bool:
            return await status() == 200

        async def over() -> bool:
            return await status() == 401

        await eventually(acts, "the link acts")
        again = (await links.make_links(teacher, CLASS, [pod], again=True)).codes[ALICE]
        await eventually(over, "the token of the link before is over")
        there = await link_of(teacher, ALICE)
        assert there is not None
        assert (there.is_opened_by(again.digest), there.is_opened_by(code.digest)) == (True, False)
        assert await opens(places, ACTING, "one")
        await links.take_back(teacher, CLASS, [there])
        await access.open_access(teacher, CLASS, [pod])
    assert not await opens(places, ACTING, "one")
    await eventually(lambda: opens(places, ALICE, "one"), "the learner goes on")


def shaped(**changed: Any) -> Json:
    meta = {
        "name": LINK,
        "labels": {names.LABEL_COMPONENT: names.COMPONENT_LINK},
        "annotations": {
            names.ANNOTATION_USERNAME: ALICE,
            names.ANNOTATION_LINK_HASH: "0" * 64,
            names.ANNOTATION_LINK_POD: "one/11111111-2222-3333-4444-555555555555",
        },
    }
    body = {"metadata": meta, "automountServiceAccountToken": False}
    return {**body, **changed, "metadata": {**meta, **changed.get("metadata", {})}}


FOREIGN: Final[tuple[tuple[str, Json], ...]] = (
    ("another name", shaped(metadata={"name": "default"})),
    ("a name that only begins so", shaped(metadata={"name": "vkprovider-link-x"})),
    ("no label", shaped(metadata={"labels": {}})),
    ("a label more", shaped(metadata={"labels": {names.LABEL_COMPONENT: "link", "a": "b"}})),
    ("the code itself", shaped(metadata={"annotations": {names.ANNOTATION_LINK_HASH: "abc"}})),
    (
        "a cloud's role",
        shaped(metadata={"annotations": {**shaped()["metadata"]["annotations"], "eks.amazonaws.com/role-arn": "x"}}),
    ),
    ("a token in each Pod", shaped(automountServiceAccountToken=True)),
    ("passwords of registries", shaped(imagePullSecrets=[{"name": "x"}])),
    ("an owner", shaped(metadata={"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "1"}]})),
    ("a finalizer", shaped(metadata={"finalizers": ["vkprovider.io/x"]})),
)


async def test_an_instructor_writes_accounts_of_links_alone(teacher: KubeClient, places: Admin) -> None:
    accounts = links.accounts_in(teacher, CLASS)
    for what, body in FOREIGN:
        with pytest.raises(Forbidden) as refused:
            await accounts.create(body)
        assert "vkprovider-links" in refused.value.message, what
    for method, name in ((accounts.delete("default"), "default"), (accounts.patch("default", {}), "default")):
        with pytest.raises(Forbidden, match="vkprovider-links"):
            await method
        assert await places.get(f"{ACCOUNTS}/{name}") is not None
    await given(teacher, "one", ALICE)
    for note in (names.ANNOTATION_LINK_HASH, names.ANNOTATION_USERNAME):
        with pytest.raises(Forbidden, match="vkprovider-links"):
            await accounts.patch(LINK, {"metadata": {"annotations": {note: "1" * 64}}})
    with pytest.raises(Forbidden):
        await links.accounts_in(teacher, OTHER).create(shaped())


async def test_an_admin_allows_links_first_and_what_there_is_may_always_be_taken_back(
    teacher: KubeClient, places: Admin
) -> None:
    await given(teacher, "one", ALICE)
    await allow(places, None)

    async def refused() -> bool:
        done = await links.make_links(teacher, CLASS, [await assign(teacher, "two", BOB)])
        for link in (await links.links_in(teacher, CLASS)).values():
            if link.learner == BOB:
                await links.take_back(teacher, CLASS, [link])
        return bool(done.faults) and all(
            words in done.faults[0] for words in ("Nobody has allowed links", "kubectl lablet grant")
        )

    await eventually(refused, "links are not allowed any more")
    there = await link_of(teacher, ALICE)
    assert there is not None
    await links.take_back(teacher, CLASS, [there])
    assert await link_of(teacher, ALICE) is None


async def test_the_provider_deletes_accounts_of_links_alone(places: Admin, provider: aiohttp.ClientSession) -> None:
    await places.create(ACCOUNTS, shaped())

    async def refused() -> bool:
        async with provider.delete(f"{ACCOUNTS}/default") as answer:
            return answer.status == 403 and CONFINED in await answer.text()

    await eventually(refused, "the policy")
    async with provider.delete(f"{ACCOUNTS}/{LINK}") as answer:
        assert answer.status == 200
    async with provider.post(ACCOUNTS, json=shaped()) as answer:
        assert answer.status == 403


@pytest.fixture
async def portal(apiserver: ApiServer) -> AsyncIterator[aiohttp.ClientSession]:
    """A thief of the portal's token."""
    install(apiserver)
    token = apiserver.kubectl("create", "token", "vkprovider-portal", f"--namespace={SYSTEM}").strip()
    async with AsyncExitStack() as stack:
        connector = aiohttp.TCPConnector(ssl=apiserver.client_tls())
        headers = {"Authorization": f"Bearer {token}"}
        yield await stack.enter_async_context(
            aiohttp.ClientSession(apiserver.url, headers=headers, connector=connector)
        )


def asked(seconds: int | None = 3600) -> Json:
    spec: Json = {} if seconds is None else {"expirationSeconds": seconds}
    return {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}


async def test_the_portal_has_tokens_of_links_alone_and_for_an_hour(
    portal: aiohttp.ClientSession, places: Admin
) -> None:
    await places.create(ACCOUNTS, shaped())

    async def told(path: str, body: Json) -> tuple[int, str]:
        async with portal.post(f"{path}/token", json=body) as answer:
            return answer.status, await answer.text()

    async def refused() -> bool:
        status, text = await told(f"{ACCOUNTS}/default", asked())
        return status == 403 and PORTAL in text

    await eventually(refused, "the policy")

    async def made() -> bool:
        return (await told(f"{ACCOUNTS}/{LINK}", asked()))[0] == 201

    await eventually(made, "links are allowed")
    assert (await told(f"{ACCOUNTS}/{LINK}", asked(None)))[0] == 201, "an hour is what one has without asking"
    for path, body in (
        (f"{ACCOUNTS}/{LINK}", asked(3601)),
        (f"{NAMESPACES}/{SYSTEM}/serviceaccounts/vkprovider", asked()),
        (f"{NAMESPACES}/{OTHER}/serviceaccounts/default", asked()),
    ):
        status, text = await told(path, body)
        assert (status, PORTAL in text) == (403, True), (path, text)
    await allow(places, None)

    async def over() -> bool:
        status, text = await told(f"{ACCOUNTS}/{LINK}", asked())
        return status == 403 and PORTAL in text

    await eventually(over, "links are not allowed any more")
    async with portal.get(ACCOUNTS) as answer:
        assert answer.status == 403, "it lists none"


async def test_two_who_assign_at_once_make_one_link(teacher: KubeClient) -> None:
    await given(teacher, "two", BOB)  # links are allowed
    pod = await assign(teacher, "one", ALICE)
    rounds = await asyncio.gather(*(links.make_links(teacher, CLASS, [pod]) for _ in range(4)))
    codes = [each.codes[ALICE] for each in rounds if ALICE in each.codes]
    there = await link_of(teacher, ALICE)
    assert there is not None
    assert len(codes) == 1
    assert there.is_opened_by(codes[0].digest)


def account(name: str, namespace: str = CLASS) -> Json:
    return {"kind": "ServiceAccount", "name": name, "namespace": namespace}


LEARNER: Final = binding("one")["subjects"]
BOUND: Final[tuple[tuple[str, Json], ...]] = (
    ("an account that is no link's", binding("one", subjects=[*LEARNER, account("default")])),
    ("another class's link", binding("one", subjects=[*LEARNER, account(LINK, OTHER)])),
    ("a link and nobody", binding("one", subjects=[account(LINK)])),
    ("two links", binding("one", subjects=[*LEARNER, account(LINK), account(f"{LINK}b")])),
    ("a learner and four guests", binding("one", subjects=LEARNER * 5)),
)


async def test_an_assignment_binds_few_people_and_a_link_of_each(teacher: KubeClient, places: Admin) -> None:
    await given(teacher, "two", BOB)
    await Resource(teacher, access.ROLES, CLASS).create(role("one", READS))
    bindings = Resource(teacher, access.BINDINGS, CLASS)
    for what, body in BOUND:
        with pytest.raises(Forbidden) as refused:
            await bindings.create(body)
        assert "vkprovider-assignments" in refused.value.message, what
    fits = binding("one", subjects=[*LEARNER, account(LINK)])
    await bindings.create(fits)
    await bindings.delete("vkprovider-assigned:one")
    await allow(places, None)

    async def refused_now() -> bool:
        try:
            await bindings.create(fits)
        except Forbidden as error:
            return "Nobody has allowed links" in error.message
        await bindings.delete("vkprovider-assigned:one")
        return False

    await eventually(refused_now, "links are not allowed any more")


async def test_no_account_but_an_admins_binds_a_link_elsewhere(teacher: KubeClient) -> None:
    """The instructor gives a link no Role of another name."""
    await given(teacher, "one", ALICE)
    body = {
        "metadata": {"name": "mine"},
        "roleRef": {"apiGroup": access.GROUP, "kind": "ClusterRole", "name": "vkprovider-instructor"},
        "subjects": [{"kind": "ServiceAccount", "name": LINK, "namespace": CLASS}],
    }
    with pytest.raises(Forbidden, match="vkprovider-assignments"):
        await Resource(teacher, access.BINDINGS, CLASS).create(body)
