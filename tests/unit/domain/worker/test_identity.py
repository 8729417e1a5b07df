"""Which CMLWorkers are one CML controller."""

from hypothesis import given
from hypothesis import strategies as st

from vkprovider.api.objects import CustomResource, Metadata
from vkprovider.domain.worker.identity import evidence_of, may_be_twin, same_controller

LABS = st.sets(st.sampled_from([f"lab-{n}" for n in range(6)]))
URL = "https://cml-1.example.com"


def cmlworker(name: str, created: int, evidence: list[str]) -> CustomResource:
    stamp = f"2026-11-22T10:00:0{created}Z"
    return CustomResource(Metadata(name, creation_timestamp=stamp), status={"identity": evidence})


def test_url_is_compared_as_it_is_dialled() -> None:
    first, second = evidence_of(URL, "", None, []), evidence_of("https://CML-1.example.com:443/", "", None, [])
    assert first == second == ["url:cml-1.example.com"]
    assert evidence_of("null://w1", "", None, []) == ["url:null://w1"]
    assert evidence_of("http://cml-1.example.com", "", None, []) != first


def test_what_a_silent_worker_was_is_remembered_unless_its_url_changed() -> None:
    before = evidence_of(URL, "h", {"a"}, [])
    assert evidence_of(URL, "", None, before) == before == ["url:cml-1.example.com", "host:h", "lab:a"]
    assert evidence_of("https://other", "", None, before) == ["url:other"]


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
    said = [same_controller(a, mine, everything, [a, b]), same_controller(b, theirs, everything, [a, b])]
    assert [fault is not None for fault in said] == ([bool(everything), False] if swap else [False, bool(everything)])


def test_the_earlier_one_by_time_then_name_keeps_the_controller() -> None:
    same = ["host:h"]
    a, b, c = cmlworker("a", 2, same), cmlworker("b", 1, same), cmlworker("c", 2, same)
    everyone = [a, b, c]
    assert same_controller(b, same, frozenset(), everyone) is None
    for later in (a, c):
        fault = same_controller(later, same, frozenset(), everyone)
        assert fault is not None
        assert fault.reason == "SameController"
        assert "CMLWorker b " in fault.message
    assert same_controller(a, same, frozenset(), [a, c]) is None
    assert same_controller(c, same, frozenset(), [a, c]) is not None


def test_different_controllers_are_never_one() -> None:
    a = cmlworker("a", 1, evidence_of("https://a", "h1", {"x"}, []))
    mine = evidence_of("https://b", "h2", {"y"}, [])
    assert same_controller(cmlworker("b", 2, mine), mine, {"y"}, [a, CustomResource(Metadata("new"))]) is None


def test_a_worker_may_be_a_twin_until_the_ids_of_both_hosts_are_known() -> None:
    one, other, bare = ["url:a", "host:1", "lab:x"], ["url:b", "host:2", "lab:y"], ["url:c", "lab:z"]
    assert not may_be_twin("a", one, [])
    assert not may_be_twin("a", one, [cmlworker("a", 1, bare), cmlworker("b", 2, other)])
    assert may_be_twin("a", one, [cmlworker("b", 2, other), cmlworker("c", 3, bare)])
    assert may_be_twin("a", bare, [cmlworker("b", 2, other)])
    assert may_be_twin("a", one, [cmlworker("b", 2, ["url:b", "host:1"])]), "it is known, and what has begun goes on"
