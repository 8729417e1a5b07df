"""Names of a user lab's objects: valid for any user, and never another's (R002-053)."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vkprovider.portal.pure import portalnames

LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
USERS = st.one_of(
    st.text(min_size=1, max_size=300),
    st.text("aA-_@.x0", min_size=1, max_size=60),
    st.from_regex(r"[a-z]{1,4}-[0-9a-f]{16}", fullmatch=True),
    st.from_regex(r"warm-[0-9a-f]{10}", fullmatch=True),
    st.emails(),
)


@pytest.mark.parametrize("user", ["alice", "a", "0", "alice-2", "a" * 40, "warm", "warm-0123"])
def test_a_user_whose_name_fits_keeps_it(user: str) -> None:
    assert portalnames.namespace_of("nublado", user) == f"nublado-{user}"
    assert portalnames.pod_name(portalnames.user_key(user)) == f"nb-{user}"


@pytest.mark.parametrize(
    ("user", "readable"),
    [
        ("Alice", "alice"),
        ("_@x", "x"),
        ("-a", "a"),
        ("a-", "a"),
        ("Ж", "user"),
        ("@", "user"),
        ("alice@example.com", "alice-example-com"),
        ("a" * 41, "a" * 23),
        ("x" * 300, "x" * 23),
        ("bob-0123456789abcdef", "bob-0123456789abcdef"),
        ("warm-0123456789", "warm-0123456789"),
        ("system:serviceaccount:team:bot", "system-serviceaccount-t"),
        ("alice\n", "alice"),
    ],
)
def test_any_other_user_gets_a_key_with_a_hash(user: str, readable: str) -> None:
    assert re.fullmatch(f"{readable}-[0-9a-f]{{16}}", portalnames.user_key(user))


def test_keys_are_stable() -> None:
    """A lab is found again after an upgrade."""
    assert portalnames.user_key("Alice@example.com") == "alice-example-com-cdbc73c2371c82a2"


@given(USERS, USERS)
@example("A", "a")
@example("Alice", portalnames.user_key("Alice"))
@example("_@x", "-@x")
@example("x" * 300, "x" * 301)
def test_no_two_users_share_a_key(one: str, other: str) -> None:
    assert (portalnames.user_key(one) == portalnames.user_key(other)) == (one == other)


@given(USERS)
def test_every_name_is_valid(user: str) -> None:
    key = portalnames.user_key(user)
    longest = "p" * 22
    assert re.fullmatch(portalnames.PREFIX, longest)
    assert len(key) <= portalnames.KEY_CHARS_MAX
    made = [
        portalnames.pod_name,
        portalnames.secret_name,
        portalnames.binding_name,
        portalnames.env_name,
        portalnames.lease_name,
    ]
    for name in [key, portalnames.namespace_of(longest, user), *(make(key) for make in made)]:
        assert LABEL.fullmatch(name)


@given(USERS, st.integers(0, 2**40 - 1))
def test_no_user_has_the_key_of_a_warm_lab(user: str, dice: int) -> None:
    warm = portalnames.warm_key(dice)
    assert portalnames.user_key(user) != warm
    assert portalnames.user_key(warm) != warm
    assert portalnames.warm_key_in(portalnames.namespace_name("nublado", warm)) == warm
    assert portalnames.warm_key_in(portalnames.namespace_of("nublado", user)) is None


@given(USERS)
def test_a_learner_is_named_as_a_pod_can_name_one(user: str) -> None:
    learner = portalnames.learner_of(user)
    assert len(learner) <= portalnames.USERNAME_CHARS_MAX
    assert learner.isprintable()
    assert learner == learner.strip()
    assert learner in {user, portalnames.user_key(user)}


def test_the_prefix_of_usernames_is_cut() -> None:
    assert portalnames.user_of("oidc:alice", "oidc:") == "alice"
    assert portalnames.user_of("alice", "oidc:") is None
    assert portalnames.user_of("oidc:", "oidc:") is None
    assert portalnames.user_of("alice", "") == "alice"
    assert portalnames.username_of("alice", "oidc:") == "oidc:alice"
