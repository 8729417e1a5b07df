"""What a replica of the portal knows, and whom a change wakes (R002-012, 013, 077)."""

import msgspec

from tests.unit.portal.pure.builders import COMPLETE, INSTALLATION, NOW, REQUEST, namespace, pod
from vkprovider.platform.kube.resources import PartialObject
from vkprovider.platform.objects import CustomResource, Event, Metadata
from vkprovider.portal.pure import portalnames
from vkprovider.portal.service.index import UserLabIndex


class Woken:
    """An index, and what it has woken."""

    def __init__(self, starts_max: int = 50) -> None:
        self.keys: list[str] = []
        self.index = UserLabIndex(INSTALLATION, starts_max, self.keys.append)

    def taken(self) -> set[str]:
        keys, self.keys[:] = set(self.keys), []
        return keys


def made(user: str, *, at: int = NOW, name: str = "", deleted: bool = False) -> PartialObject:
    request = msgspec.structs.replace(REQUEST, id=f"r-{user}", at=at, by=user)
    meta = namespace(user, request, deleted=deleted)
    return PartialObject(msgspec.structs.replace(meta, name=name or meta.name, uid=f"uid-{name or user}"))


def test_a_lab_is_found_by_its_user_and_not_by_its_namespace() -> None:
    woken = Woken()
    woken.index.namespace_changed(None, made("alice", name="nublado-warm-0123456789"))
    found = woken.index.lab("alice")
    assert found is not None
    assert found.record.namespace == "nublado-warm-0123456789"
    assert woken.index.lab("Alice") is None
    assert woken.taken() == {"nublado-warm-0123456789"}


def test_of_two_labs_of_a_user_the_older_counts_and_the_other_knows_it() -> None:
    woken = Woken()
    first, second = made("alice"), made("alice", name="nublado-warm-0123456789")
    later = msgspec.structs.replace(second.metadata, creation_timestamp="2027-01-01T00:00:00Z")
    second = PartialObject(later)
    woken.index.namespace_changed(None, second)
    assert woken.index.at("nublado-warm-0123456789").second is False  # type: ignore[union-attr]
    woken.index.namespace_changed(None, first)
    assert woken.index.lab("alice").record.namespace == "nublado-alice"  # type: ignore[union-attr]
    assert woken.index.at("nublado-warm-0123456789").second is True  # type: ignore[union-attr]
    assert [lab.user for lab in woken.index.labs()] == ["alice"]
    woken.taken()
    woken.index.namespace_changed(first, None)
    assert woken.index.at("nublado-warm-0123456789").second is False  # type: ignore[union-attr]
    assert "nublado-warm-0123456789" in woken.taken()


def test_the_pod_of_the_present_request_counts_before_one_that_is_in_the_way() -> None:
    index = Woken().index
    index.namespace_changed(None, made("alice"))
    old = pod("alice", request="r0")
    index.pod_changed(None, old)
    assert index.lab("alice").own_pod is None  # type: ignore[union-attr]
    assert index.lab("alice").pod is old  # type: ignore[union-attr]
    new = pod("alice", request="r-alice")
    new = msgspec.structs.replace(new, metadata=msgspec.structs.replace(new.metadata, name="nb-alice-2"))
    index.pod_changed(None, new)
    assert index.lab("alice").own_pod is new  # type: ignore[union-attr]


def test_a_lab_counts_as_exposed_until_its_definition_says_otherwise() -> None:
    index = Woken().index
    index.namespace_changed(None, made("alice"))
    index.pod_changed(None, pod("alice", request="r-alice"))
    assert index.lab("alice").exposed is True  # type: ignore[union-attr]
    index.definition_changed(None, CustomResource(Metadata(""), {}))
    assert index.lab("alice").exposed is False  # type: ignore[union-attr]


def test_labs_wait_in_line_and_who_is_next_is_woken() -> None:
    woken = Woken(starts_max=1)
    index = woken.index
    for number, user in enumerate(("alice", "bob", "carol")):
        index.namespace_changed(None, made(user, at=NOW + number))
    assert [index.queued(user) for user in ("alice", "bob", "carol")] == [None, 1, 2]
    starting = pod("alice", request="r-alice")
    index.pod_changed(None, starting)
    assert [index.queued(user) for user in ("alice", "bob", "carol")] == [None, 1, 2]
    woken.taken()
    index.pod_changed(starting, pod("alice", request="r-alice", ready=True))
    assert [index.queued(user) for user in ("alice", "bob", "carol")] == [None, None, 1]
    assert woken.taken() >= {"nublado-alice", "nublado-bob"}
    assert index.at("nublado-carol").ahead == 1  # type: ignore[union-attr]


def test_a_lab_that_has_ended_or_is_ending_holds_nobody_up() -> None:
    index = Woken(starts_max=1).index
    done = msgspec.structs.replace(COMPLETE, id="r1")
    index.namespace_changed(None, PartialObject(namespace("dave", REQUEST, done)))
    index.namespace_changed(None, made("erin", deleted=True))
    index.namespace_changed(None, made("alice"))
    assert index.queued("alice") is None


async def test_a_listener_hears_of_its_own_user_only() -> None:
    index = Woken().index
    index.namespace_changed(None, made("alice"))
    async with index.listen("alice") as news, index.listen("bob") as other:
        assert index.listeners_total == 2
        event = Event(Metadata("e1", "nublado-alice", "uid-e1"), reason="Created")
        index.event_changed(None, event)
        assert news.is_set()
        assert not other.is_set()
        assert index.events_of("alice") == [event]
        news.clear()
        index.namespace_changed(made("alice"), None)
        assert news.is_set()
        assert index.events_of("alice") == []
    assert index.listeners_total == 0


async def test_a_listener_hears_of_every_lab_of_a_class_and_of_one_that_leaves_it() -> None:
    index = Woken().index
    mine = made("alice")
    mine = PartialObject(
        msgspec.structs.replace(mine.metadata, labels=mine.metadata.labels | {portalnames.LABEL_CLASS: "net101"})
    )
    async with index.listen_class("net101") as news, index.listen_class("net202") as other:
        assert index.listeners_total == 2
        index.namespace_changed(None, mine)
        assert news.is_set()
        news.clear()
        index.pod_changed(None, pod("alice", request="r-alice"))
        assert news.is_set()
        news.clear()
        index.namespace_changed(mine, made("alice"))
        assert news.is_set()
        news.clear()
        index.pod_changed(None, pod("alice", request="r-alice", ready=True))
        assert not news.is_set()
        assert not other.is_set()
    assert index.listeners_total == 0
