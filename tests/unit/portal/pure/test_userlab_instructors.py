"""Who instructs in the lab of a class: the decision."""

import hypothesis.strategies as st
from hypothesis import given

from vkprovider.platform.objects import Metadata, RoleBinding, RoleRef, Subject
from vkprovider.portal.pure.leading import (
    BINDING,
    CLASS_ROLE,
    LAB_ROLE,
    Bind,
    Unbind,
    change,
    is_of_class,
    is_of_lab,
    of_class,
)
from vkprovider.portal.pure.record import LabRecord

ANN, BOB = Subject("User", "ann", "rbac.authorization.k8s.io"), Subject("ServiceAccount", "bob", namespace="schools")
LAB = LabRecord("nublado-x", "u", "7", 0.0, user="x", key="x", class_="friday")


def bound(*subjects: Subject, role: str = LAB_ROLE, name: str = BINDING, kind: str = "ClusterRole") -> RoleBinding:
    return RoleBinding(Metadata(name, "ns", "uid"), RoleRef(kind, role), subjects or None)


def test_who_instructs_a_class() -> None:
    one, two = bound(BOB, ANN, role=CLASS_ROLE, name="a"), bound(ANN, role=CLASS_ROLE, name="b")
    assert of_class([one, two]) == (BOB, ANN)
    carrier = bound(role=CLASS_ROLE, name=CLASS_ROLE)  # only the address of the page stands on it
    other = [bound(BOB, role="edit"), bound(BOB, role=CLASS_ROLE, kind="Role"), bound(BOB)]
    assert of_class([two, carrier, *other]) == (ANN,)


def test_which_binding_is_that_of_a_lab() -> None:
    assert is_of_lab(bound(ANN))
    assert not is_of_class(bound(ANN))
    assert not is_of_lab(bound(ANN, name="other"))
    assert not is_of_lab(bound(ANN, kind="Role"))
    assert not is_of_lab(bound(ANN, role=CLASS_ROLE))


def test_what_is_written() -> None:
    assert change(LAB, (ANN,), None) == Bind((ANN,), None)
    assert change(LAB, (ANN,), bound(ANN)) is None
    assert change(LAB, (ANN,), bound(BOB)) == Bind((ANN,), bound(BOB))
    assert change(LAB, (ANN,), bound()) == Bind((ANN,), bound())
    assert change(LAB, (), bound(ANN)) == Unbind(bound(ANN))
    assert change(LAB, (), None) is None
    of_none = LAB._replace(class_="")
    assert change(of_none, (ANN,), bound(ANN)) == Unbind(bound(ANN)), "the lab is of no class any more"
    assert change(of_none, (ANN,), None) is None


def test_a_lab_that_is_being_deleted_gets_no_instructors_and_loses_those_who_are_none_any_more() -> None:
    """Its Namespace takes nothing new, and may end for long, with the learner's Pod in it."""
    deleted = LAB._replace(deleted=True)
    assert change(deleted, (ANN,), None) is None
    assert change(deleted, (ANN,), bound(ANN)) is None
    assert change(deleted, (BOB, ANN), bound(ANN)) is None, "nobody is added"
    assert change(deleted, (ANN,), bound(ANN, BOB)) == Bind((ANN,), bound(ANN, BOB))
    assert change(deleted, (), bound(ANN)) == Unbind(bound(ANN))
    assert change(deleted, (ANN,), bound(BOB)) == Unbind(bound(BOB))
    assert change(deleted._replace(class_=""), (ANN,), bound(ANN)) == Unbind(bound(ANN))


people = st.lists(
    st.builds(Subject, st.sampled_from(["User", "Group", "ServiceAccount"]), st.text(max_size=3), st.just("g")),
    max_size=5,
)


@given(people, people, st.booleans())
def test_one_write_is_enough(instructors: list[Subject], present: list[Subject], there: bool) -> None:  # noqa: FBT001 (drawn)
    wanted = of_class([bound(*instructors, role=CLASS_ROLE)])
    before = bound(*present) if there else None
    step = change(LAB, wanted, before)
    after = before if step is None else bound(*step.subjects) if isinstance(step, Bind) else None
    assert change(LAB, wanted, after) is None
    assert set(instructors) == set((after.subjects or ()) if after is not None else ())


@given(people, people)
def test_one_write_is_enough_while_a_lab_is_being_deleted(instructors: list[Subject], present: list[Subject]) -> None:
    deleted, wanted, before = (
        LAB._replace(deleted=True),
        of_class([bound(*instructors, role=CLASS_ROLE)]),
        bound(*present),
    )
    step = change(deleted, wanted, before)
    after = before if step is None else bound(*step.subjects) if isinstance(step, Bind) else None
    assert change(deleted, wanted, after) is None
    assert set((after.subjects or ()) if after is not None else ()) == set(instructors) & set(present)
