"""What stays in memory of a Pod."""

from vkprovider.api import names
from vkprovider.api.objects import Container, Metadata, Pod, PodSpec
from vkprovider.api.slimming import slim_pod


def pod(labels: dict[str, str], notes: dict[str, str]) -> Pod:
    return Pod(Metadata("p", labels=labels, annotations=notes), PodSpec([Container("lab")]))


def test_only_labels_and_annotations_of_vkprovider_stay() -> None:
    ours = {names.ANNOTATION_USERNAME: "ann", names.ANNOTATION_PORT_MAPPINGS: "{}"}
    found = slim_pod(pod({names.LABEL_POOL: "a", "app": "x"}, {**ours, "kubectl.kubernetes.io/last-applied": "x" * 99}))
    assert found.metadata.annotations == ours
    assert found.metadata.labels == {names.LABEL_POOL: "a"}
    assert slim_pod(found) is found


def test_too_much_is_cut() -> None:
    notes = {names.ANNOTATION_RESET: "r" * 200_000, names.ANNOTATION_USERNAME: "ann", "vkprovider.io/other": "x" * 9}
    found = slim_pod(pod({}, notes)).metadata.annotations
    assert found == {names.ANNOTATION_RESET: "r" * 1024, names.ANNOTATION_USERNAME: "ann"}


def test_every_annotation_of_a_pod_is_known() -> None:
    """An annotation that is read and not listed would be lost where there are many."""
    elsewhere = {
        *(names.ANNOTATION_INSTALLATION, names.ANNOTATION_PROCESS, names.ANNOTATION_CML_BUILD),
        names.ANNOTATION_AGENTS_URL,
        *(names.ANNOTATION_NODE_LABELS, names.ANNOTATION_HOST, names.ANNOTATION_ABANDON, names.ANNOTATION_REFRESH),
        *(names.ANNOTATION_DELETION_COST, names.ANNOTATION_APPROVED, names.ANNOTATION_CORDONED),
    }
    listed = {value for name, value in vars(names).items() if name.startswith("ANNOTATION_")}
    assert listed - elsewhere == names.POD_ANNOTATIONS
