"""Everything as Pods, installed by Helm with --wait: a killed container, another image, and the uninstallation."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import ordinary as support
from tests.support.containers import IMAGE, podman
from tests.support.extra import SYSTEM
from tests.support.helm import CHART, HELM, MISSING, Helm
from tests.support.installation import WORKER
from tests.support.ordinary import Ordinary, ordinary
from tests.support.topologies import definition, deployment
from tests.support.waiting import until

pytestmark = [
    pytest.mark.skipif(bool(why := support.missing()), reason=why),
    pytest.mark.skipif(HELM is None, reason=MISSING),
    pytest.mark.timeout(1200),
]

REPOSITORY, TAG = IMAGE.rsplit(":", 1)
OTHER = "other"
"""Another tag of the same image."""
RELEASE = ("vkprovider", str(CHART), f"--namespace={SYSTEM}", "--wait", "--timeout=4m")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ordinary]:
    """An empty cluster whose Node has the image by two tags."""
    folder = tmp_path_factory.mktemp("node")
    archive = support.archive(folder)
    again = folder / "other.tar"
    podman("tag", IMAGE, f"{REPOSITORY}:{OTHER}")
    podman("save", "--quiet", f"--output={again}", f"{REPOSITORY}:{OTHER}")
    with ordinary("node-helm", folder, [archive, again]) as made:
        yield made


def values(tag: str) -> list[str]:
    given = {
        "image.repository": REPOSITORY,
        "image.tag": tag,
        "mux.enabled": "true",
        "portal.enabled": "true",
        "portal.createCookieKey": "true",
    }
    return [f"--set={key}={value}" for key, value in given.items()]


def images(made: Ordinary) -> set[str]:
    return {each["image"] for pod in made.pods() for each in pod["spec"]["containers"]}


def restarts(made: Ordinary, pod: str) -> int:
    [status] = made.get("pod", pod, f"--namespace={SYSTEM}")["status"]["containerStatuses"]
    assert status["ready"]
    return int(status["restartCount"])


def test_a_release_lives_on_a_real_node(made: Ordinary, tmp_path: Path) -> None:
    helm = Helm(tmp_path, made.sandbox.kubeconfig)
    helm("install", *RELEASE, "--create-namespace", *values(TAG))
    made.kubectl("label", "namespace", SYSTEM, "pod-security.kubernetes.io/enforce=restricted")
    assert images(made) == {IMAGE}
    assert len(made.pods()) == 6
    made.connect()
    made.wait_node()
    made.apply(definition("alpine"))
    until(lambda: made.get("runtimeclass", "alpine"), 30)
    made.apply(deployment("class", "alpine", 2), namespace="default")
    before = {pod["metadata"]["uid"] for pod in made.wait_lablets("default", 2)}

    killed = made.pods()[0]
    [status] = killed["status"]["containerStatuses"]
    made.kill_container(status["containerID"].removeprefix("containerd://"))
    until(lambda: restarts(made, killed["metadata"]["name"]) == status["restartCount"] + 1, 90)

    helm("upgrade", *RELEASE, *values(OTHER))
    until(lambda: images(made) == {f"{REPOSITORY}:{OTHER}"}, 60)
    assert {pod["metadata"]["uid"] for pod in made.wait_lablets("default", 2)} == before, "lablets keep running"

    made.kubectl("delete", "deployment", "class", "--namespace=default")
    made.kubectl("delete", "ldef,cmlw", "--all", "--timeout=100s")
    until(lambda: not made.get("node", f"vnode.{WORKER}"), 60)
    helm("uninstall", "vkprovider", f"--namespace={SYSTEM}", "--wait")
    until(lambda: not made.pods(), 60)  # their Deployments are gone before them
