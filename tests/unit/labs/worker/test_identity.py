"""Which CMLWorkers are one CML controller."""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from hypothesis import given
from hypothesis import strategies as st

from vkprovider.labs.pure.worker.identity import (
    AGENTS_OWN,
    UNSEEN,
    Identities,
    access_in,
    access_of,
    entries_of,
    may_be_twin,
    same_controller,
    unseen_labs,
)
from vkprovider.labs.pure.worker.identity import evidence_of as evidence_by
from vkprovider.platform.errors import InputError
from vkprovider.platform.objects import CustomResource, Metadata

LABS = st.sets(st.sampled_from([f"lab-{n}" for n in range(6)]))
URL = "https://cml-1.example.com"


def evidence_of(url: str, host: str, lab_ids: AbstractSet[str] | None, before: Iterable[str]) -> list[str]:
    """Return the identity of a controller by the url of its CMLWorker."""
    return evidence_by(access_of(url, "").url, host, lab_ids, before)


def cmlworker(name: str, created: int, evidence: list[str]) -> CustomResource:
    stamp = f"2026-11-22T10:00:0{created}Z"
    return CustomResource(Metadata(name, creation_timestamp=stamp), status={"identity": evidence})


def same(
    mine: CustomResource, evidence: Iterable[str], lab_ids: AbstractSet[str], everyone: Iterable[CustomResource]
) -> InputError | None:
    known = Identities()
    for each in everyone:
        known.changed(None, each)
    entries = entries_of(evidence, lab_ids)
    return same_controller(mine, entries, known.sharing(entries))


def test_url_is_compared_as_it_is_dialled() -> None:
    first, second = evidence_of(URL, "", None, []), evidence_of("https://CML-1.example.com:443/", "", None, [])
    assert first == second == ["url:cml-1.example.com"]
    assert evidence_of("null://w1", "", None, []) == ["url:null://w1"]
    assert evidence_of("http://cml-1.example.com", "", None, []) != first


def test_what_a_silent_worker_was_is_remembered_until_its_labs_are_seen_again() -> None:
    before = evidence_of(URL, "h", {"a"}, [])
    assert evidence_of(URL, "", None, before) == before == ["url:cml-1.example.com", "host:h", "lab:a"]
    assert evidence_of("https://other", "", None, before) == before
    assert evidence_of("https://other", "", {"b"}, before) == ["url:other", "lab:b"]


def test_access_is_remembered_by_what_was_published() -> None:
    mine = evidence_of(URL, "", {"a"}, [])
    assert access_in(mine, "labs") == access_of(URL, "labs")
    assert access_in([], "") == UNSEEN


def test_list_of_another_user_says_that_labs_are_gone_only_if_all_of_them_are_in_it() -> None:
    """A user may own one of them, or belong to its group, and not see the others."""
    anna, agent = access_of(URL, "anna"), access_of(URL, AGENTS_OWN)
    changes = [
        (anna, access_of(URL, "bert"), "user bert", "user anna", "put user anna back into the Secret"),
        (anna, agent, "the agent's own user", "user anna", "name a Secret of user anna in spec.credentialsSecretName"),
        (agent, anna, "user anna", "the agent's own user", "without spec.credentialsSecretName"),
    ]
    for before, now, who, other, remedy in changes:
        text = unseen_labs("w", before, now, {"a", "b"}, {"c"})
        assert text.startswith(f"{who} sees no lab of the worker's 2 claims, which {other} saw: ")
        assert "kubectl annotate cmlw w vkprovider.io/abandon=true" in text
        assert remedy in text
        text = unseen_labs("w", before, now, {"a", "b"}, {"b", "c"})
        assert text.startswith(f"{who} sees 1 of 2 labs that the worker's claims name, and {other} saw: ")
        assert "abandon" not in text, "the other lab runs on"
        assert remedy in text
        assert unseen_labs("w", before, now, {"a", "b"}, {"a", "b", "c"}) == ""
        assert unseen_labs("w", before, now, set(), {"c"}) == ""
    for known in (anna, access_of(URL, ""), UNSEEN):  # one deleted it in CML; an earlier version published no user
        assert unseen_labs("w", known, anna, {"a"}, set()) == ""


def test_list_at_another_url_says_that_labs_are_gone_only_if_it_has_others_of_them() -> None:
    before, now = access_of(URL, "anna"), access_of("https://cml-2.example.com", "anna")
    text = unseen_labs("w", before, now, {"a", "b"}, {"c"})
    assert text.startswith("cml-2.example.com has no lab of the worker's 2 claims")
    for known in (before, access_of(URL, "")):
        assert unseen_labs("w", known, now, {"a", "b"}, {"b", "c"}) == "", "one user sees the same at one controller"
    tunnelled = access_of("agent://w", "anna")
    assert "put spec.tunnel back to what it was" in unseen_labs("w", tunnelled, now, {"a"}, set())


@given(before=LABS, now=LABS)
def test_labs_that_identify_a_controller_are_on_it_and_change_rarely(before: set[str], now: set[str]) -> None:
    first = evidence_of(URL, "", before, [])
    second = evidence_of(URL, "", now, first)
    labs = {entry.removeprefix("lab:") for entry in second if entry.startswith("lab:")}
    kept = {entry.removeprefix("lab:") for entry in first if entry.startswith("lab:")}
    assert labs <= now
    assert kept & now <= labs
    assert len(labs) == min(3, len(now))


@given(labs=LABS, others=LABS, swap=st.booleans())
def test_workers_that_see_a_lab_in_common_are_one_whatever_each_publishes(
    labs: set[str],
    others: set[str],
    swap: bool,  # noqa: FBT001 (drawn)
) -> None:
    """Administrators see all labs; then any common lab is found by the later worker."""
    everything = labs | others
    mine = evidence_of("https://a", "", everything, [f"lab:{lab}" for lab in labs])
    theirs = evidence_of("https://b", "", everything, [f"lab:{lab}" for lab in others])
    created = (2, 1) if swap else (1, 2)
    a, b = cmlworker("a", created[0], mine), cmlworker("b", created[1], theirs)
    said = [same(a, mine, everything, [a, b]), same(b, theirs, everything, [a, b])]
    assert [fault is not None for fault in said] == ([bool(everything), False] if swap else [False, bool(everything)])


def test_the_earlier_one_by_time_then_name_keeps_the_controller() -> None:
    host = ["host:h"]
    a, b, c = cmlworker("a", 2, host), cmlworker("b", 1, host), cmlworker("c", 2, host)
    everyone = [a, b, c]
    assert same(b, host, frozenset(), everyone) is None
    for later in (a, c):
        fault = same(later, host, frozenset(), everyone)
        assert fault is not None
        assert fault.reason == "SameController"
        assert "CMLWorker b " in fault.message
    assert same(a, host, frozenset(), [a, c]) is None
    assert same(c, host, frozenset(), [a, c]) is not None


def test_different_controllers_are_never_one() -> None:
    a = cmlworker("a", 1, evidence_of("https://a", "h1", {"x"}, []))
    mine = evidence_of("https://b", "h2", {"y"}, [])
    assert same(cmlworker("b", 2, mine), mine, {"y"}, [a, CustomResource(Metadata("new"))]) is None


@given(st.lists(st.tuples(st.sampled_from("abc"), LABS), max_size=20))
def test_what_cmlworkers_publish_is_found_as_it_is_now(changes: list[tuple[str, set[str]]]) -> None:
    known = Identities()
    now: dict[str, CustomResource] = {}
    for name, labs in changes:
        before = now.pop(name, None)
        if before is None or labs:
            now[name] = cmlworker(name, 1, sorted(labs))
        known.changed(before, now.get(name))
    for lab in {lab for _, labs in changes for lab in labs}:
        expected = [each for each in now.values() if lab in each.status["identity"]]
        found = known.sharing([lab])
        assert sorted(each.metadata.name for each in found) == sorted(each.metadata.name for each in expected)
        assert all(now[each.metadata.name] is each for each in found)


def test_a_worker_may_be_a_twin_until_the_ids_of_both_hosts_are_known() -> None:
    one, other, bare = ["url:a", "host:1", "lab:x"], ["url:b", "host:2", "lab:y"], ["url:c", "lab:z"]
    assert not may_be_twin("a", one, [])
    assert not may_be_twin("a", one, [cmlworker("a", 1, bare), cmlworker("b", 2, other)])
    assert may_be_twin("a", one, [cmlworker("b", 2, other), cmlworker("c", 3, bare)])
    assert may_be_twin("a", bare, [cmlworker("b", 2, other)])
    assert may_be_twin("a", one, [cmlworker("b", 2, ["url:b", "host:1"])]), "it is known, and what has begun goes on"
