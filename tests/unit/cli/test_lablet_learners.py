"""Which lablet a name on the command line means: a Pod's, or its learner's."""

import click
import pytest

from tests.unit.cli.lablet_pod import lablet_pod
from vkprovider.classroom.pods import LabletPod
from vkprovider.cli.lablet.console import logs_command, named_with_device
from vkprovider.cli.shared.batch import chosen
from vkprovider.cli.shared.place import Place
from vkprovider.cli.shared.pods import LabletName, named, of_learner

USER, LEARNER = "vkprovider.io/username", "vkprovider.io/learner"
GONE = "2026-01-31T11:00:00Z"


def of(name: str, user: str, *, phase: str = "Running", deleted: str | None = None) -> LabletPod:
    return lablet_pod(name, notes={USER: user}, status={"phase": phase}, deletionTimestamp=deleted)


@pytest.mark.parametrize(
    ("pods", "found"),
    [
        ([], None),
        ([of("a", "bob"), of("b", "")], None),
        ([of("a", "alice"), of("b", "bob")], "a"),
        ([of("a", "alice2"), of("b", "Alice"), of("c", "alice ")], None),
        ([of("a", "alice", phase="Succeeded"), of("b", "alice")], "b"),
        ([of("a", "alice", deleted=GONE), of("b", "alice")], "b"),
        ([of("a", "alice", phase="Failed")], "a"),
        ([lablet_pod("a", notes={USER: "alice", LEARNER: "bob"}), of("b", "alice")], "b"),
    ],
)
def test_the_lablet_of_a_learner(pods: list[LabletPod], found: str | None) -> None:
    one = of_learner(pods, "alice")
    assert (one.metadata.name if one else None) == found


@pytest.mark.parametrize("phase", ["Running", "Succeeded"])
def test_a_learner_with_several_lablets_is_refused_with_their_names(phase: str) -> None:
    with pytest.raises(click.ClickException, match="alice has 2 lablets: pod/a, pod/b; name one of these pods"):
        of_learner([of("b", "alice", phase=phase), of("a", "alice", phase=phase), of("c", "bob")], "alice")


@pytest.mark.parametrize(
    ("pod", "learner", "wanted"),
    [
        ("a", None, LabletName("a", "either")),
        ("pod/a", None, LabletName("a", "pod")),
        ("alice@example.com", None, LabletName("alice@example.com", "either")),
        (None, "alice", LabletName("alice", "learner")),
        (None, "example.com/alice", LabletName("example.com/alice", "learner")),
    ],
)
def test_a_name_as_it_is_written(pod: str | None, learner: str | None, wanted: LabletName) -> None:
    assert named(pod, learner) == wanted


@pytest.mark.parametrize(
    ("pod", "learner", "says"),
    [
        (None, None, "name a POD, or a learner with -u"),
        ("a", "alice", "not both"),
        (None, " ", "-u names no learner"),
        ("deployment/a", None, "does not name a pod"),
    ],
)
def test_a_name_that_means_nothing(pod: str | None, learner: str | None, says: str) -> None:
    with pytest.raises(click.UsageError, match=says):
        named(pod, learner)


def test_the_device_of_a_learner_is_the_first_word() -> None:
    assert named_with_device("r1", None, "alice") == (LabletName("alice", "learner"), "r1")
    assert named_with_device("a", "r1", None) == (LabletName("a", "either"), "r1")
    assert named_with_device("a", None, None) == (LabletName("a", "either"), None)
    with pytest.raises(click.UsageError, match="not both"):
        named_with_device("a", "r1", "alice")


def test_pods_and_learners_together() -> None:
    found = chosen(("a", "pod/b", "a"), ("alice",), "", Place(None, None))
    assert found.names == (LabletName("a"), LabletName("b", "pod"), LabletName("alice", "learner"))
    with pytest.raises(click.UsageError, match="not both"):
        chosen((), ("alice",), "class=a", Place(None, None))
    with pytest.raises(click.UsageError, match="or a learner with -u"):
        chosen((), (), "", Place(None, None))


def test_logs_are_those_of_the_container() -> None:
    pod = lablet_pod(containers=("lab", "r1", "access-switch"))
    assert logs_command(pod, None, follow=False, tail=None) == ["logs", "-n", "n", "a", "-c", "lab"]
    words = logs_command(pod, "Access Switch", follow=True, tail=5)
    assert words == ["logs", "-n", "n", "a", "-c", "access-switch", "--follow", "--tail=5"]
    with pytest.raises(click.ClickException, match=r"no container for device 'r 2'.*it has: lab, r1, access-switch"):
        logs_command(pod, "r 2", follow=False, tail=None)
