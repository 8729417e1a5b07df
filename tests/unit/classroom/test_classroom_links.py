"""What a link is opened with, and when it has ended."""

import re

import msgspec
import pytest

from tests.unit.classroom.test_classroom_access import pod
from vkprovider.classroom.access import binding_for
from vkprovider.classroom.links import LinkAccount, account_for, account_of, new_code, read_code
from vkprovider.classroom.pods import LabletPod
from vkprovider.platform.kube.resources import PartialObject

ALICE = "alice@example.com"


def account(of: LabletPod, digest: str = "") -> LinkAccount:
    code = new_code("friday", of.user)
    made = account_of(msgspec.convert(account_for(code, of), PartialObject))
    return made._replace(digest=digest) if digest else made


def test_a_code_has_128_random_bits_at_least_and_no_two_are_the_same() -> None:
    made = {new_code("friday", ALICE).secret for _ in range(1000)}
    assert len(made) == 1000
    assert all(re.fullmatch("[a-z2-7]{26}", secret) for secret in made), "26 of 32 letters are 130 bits"


def test_what_is_typed_is_read_as_it_was_printed() -> None:
    code = new_code("class-7-b", ALICE)
    assert read_code(code.text) == code
    typed = f"  {code.text[:20].upper()} {code.text[20:]}\n"
    assert read_code(typed) == code


@pytest.mark.parametrize(
    "text",
    ["", "friday", "friday.abc.def", "friday.abcdefghijklmnop.abcdefghijklmnopqrstuvwxy1", "/.a.b", "a" * 10_000],
)
def test_what_can_be_no_code_is_none(text: str) -> None:
    assert read_code(text) is None


def test_what_is_stored_opens_for_the_code_alone_and_does_not_tell_it() -> None:
    code, other = new_code("friday", ALICE), new_code("friday", ALICE)
    stored = account_for(code, pod(user=ALICE))
    assert code.secret not in repr(stored)
    there = account_of(msgspec.convert(stored, PartialObject))
    assert there.is_opened_by(code.digest)
    for digest in (other.digest, "", code._replace(namespace="monday").digest, code.digest.upper(), "ü"):
        assert not there.is_opened_by(digest)
    assert not account_of(msgspec.convert({"metadata": {"name": "x"}}, PartialObject)).is_opened_by("")


def test_an_account_says_whose_it_is_and_where_it_leads() -> None:
    there = account(pod(user=ALICE))
    assert (there.learner, there.pod, there.pod_uid) == (ALICE, "one", "1")
    assert there.metadata.name.startswith("vkprovider-link-")
    assert account(pod(user="bob")).metadata.name != there.metadata.name


@pytest.mark.parametrize(
    ("now", "has_ended"),
    [
        (pod(user=ALICE), False),
        (pod(), True),
        (pod(user="bob"), True),
        (pod(uid="2", user="bob"), False),
        (None, False),
    ],
)
def test_a_link_ends_with_the_learners_time_and_not_with_a_pod(now: LabletPod | None, *, has_ended: bool) -> None:
    there = {now.metadata.uid: now} if now is not None else {}
    assert account(pod(user=ALICE)).has_ended(there) is has_ended


def test_a_link_of_work_that_was_handed_in_has_ended() -> None:
    over = msgspec.convert(
        {"metadata": {"name": "one", "uid": "1"}, "spec": {"containers": []}, "status": {"phase": "Succeeded"}},
        LabletPod,
    )
    assert account(pod(user=ALICE)).has_ended({"1": over})


SHARED = {"vkprovider.io/guests": '{"bob":"watch"}'}


@pytest.mark.parametrize(
    ("now", "has_ended"),
    [
        (pod(user=ALICE, **SHARED), False),
        (pod(user=ALICE), True),
        (pod(user="bob"), True),
        (pod(user=ALICE, **{"vkprovider.io/guests": '{"eve":"watch"}'}), True),
        (None, True),
    ],
)
def test_the_link_of_a_guest_ends_with_the_invitation_and_with_the_pod(
    now: LabletPod | None, *, has_ended: bool
) -> None:
    code = new_code("friday", "bob", "1")
    there = account_of(msgspec.convert(account_for(code, pod(user=ALICE, **SHARED), "bob"), PartialObject))
    assert (there.learner, there.is_guests, there.is_whole) == ("bob", True, True)
    assert code.account != new_code("friday", "bob").account, "an own lablet's is another one"
    assert there.has_ended({now.metadata.uid: now} if now is not None else {}) is has_ended


def test_the_account_of_a_link_is_bound_beside_the_learner() -> None:
    bound = binding_for(pod(user=ALICE), "oidc:", ["vkprovider-link-abc"])
    assert [each["kind"] for each in bound["subjects"]] == ["User", "ServiceAccount"]
    assert bound["subjects"][1] == {"kind": "ServiceAccount", "name": "vkprovider-link-abc", "namespace": "friday"}
