"""What a Pod's annotations may hold: they are written by tenants, and some are copied into the claims of a worker."""

import pytest

from vkprovider.lablet import names
from vkprovider.lablet.inputs import inputs_of
from vkprovider.platform.objects import Metadata


@pytest.mark.parametrize("value", ["1", "2026-01-31T12:00:00.123456+00:00", "again, please", "x" * 64])
def test_reset_is_any_short_text(value: str) -> None:
    read = inputs_of(Metadata(name="p", annotations={names.ANNOTATION_RESET: value}))
    assert (read.reset, read.faults) == (value, ())


@pytest.mark.parametrize("name", [names.ANNOTATION_RESET, names.ANNOTATION_LENT_BY])
@pytest.mark.parametrize("value", ["x" * 65, "x" * 250_000, "a\nb", "a\x00b", "\u202e"])
def test_what_goes_into_the_claim_is_bounded(name: str, value: str) -> None:
    read = inputs_of(Metadata(name="p", annotations={name: value}))
    assert (read.reset, read.lent_by) == ("", "")
    [fault] = read.faults
    assert fault.startswith(name)
    assert len(fault) < 250


@pytest.mark.parametrize("value", ["warm-netlab", "a", "A_b.c-9", "x" * 63])
def test_pool_that_lent_is_a_label_value(value: str) -> None:
    read = inputs_of(Metadata(name="p", annotations={names.ANNOTATION_LENT_BY: value}))
    assert (read.lent_by, read.faults) == (value, ())


@pytest.mark.parametrize("value", ["-a", "a b", "a/b", "x" * 64])
def test_pool_that_could_be_no_label_is_refused(value: str) -> None:
    read = inputs_of(Metadata(name="p", annotations={names.ANNOTATION_LENT_BY: value}))
    assert read.lent_by == ""
    assert len(read.faults) == 1


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("vkprovider.io/user", "do you mean vkprovider.io/username?"),
        ("vkprovider.io/timeslot", "do you mean vkprovider.io/timeslot-"),
        ("vkprovider.io/desiredState", "do you mean vkprovider.io/desired-state?"),
        (
            "vkprovider.io/xyzzy",
            "there are desired-state, guests, message, reset, timeslot-end, timeslot-start, username",
        ),
    ],
)
def test_annotation_that_means_nothing_is_a_fault(name: str, hint: str) -> None:
    read = inputs_of(Metadata(name="p", annotations={name: "zoe"}))
    [fault] = read.faults
    assert fault.startswith(f"{name} means nothing to vkprovider; {hint}")
    assert read.username == ""


@pytest.mark.parametrize("text", ["9999-12-31T23:59:59-05:00", "9999-12-31T12:00:00Z", "9000-01-01T00:00:01Z"])
def test_a_time_that_is_meant_to_be_never_is_a_fault(text: str) -> None:
    """A duration is added to it, and the LDS is sent the result as a date."""
    read = inputs_of(Metadata(name="p", annotations={names.ANNOTATION_TIMESLOT_END: text}))
    assert read.slot_end == 0
    assert read.faults == (f"vkprovider.io/timeslot-end {text!r} is after the year 9000; leave it out for no end",)


def test_what_others_and_the_provider_write_is_none_of_them() -> None:
    notes = dict.fromkeys([*names.POD_ANNOTATIONS, "example.com/user", "kubectl.kubernetes.io/restartedAt"], "")
    assert inputs_of(Metadata(name="p", annotations=notes)).faults == ()


def test_few_annotations_that_mean_nothing_are_named() -> None:
    read = inputs_of(Metadata(name="p", annotations={f"vkprovider.io/{'x' * 500}{n}": "" for n in range(50)}))
    assert sum(map(len, read.faults)) < 1000
