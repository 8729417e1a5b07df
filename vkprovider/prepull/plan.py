"""Which Node lacks which image, and which Pods pull them."""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from vkprovider.portal.pure.config import ImagesConfig, PortalConfig
from vkprovider.portal.pure.menu import Menu, MenuImage, menu_order, version_of
from vkprovider.portal.pure.nodeimages import ImageName, OrdinaryNode

LABEL: Final = "app.kubernetes.io/name"
PROGRAM: Final = "vkprovider-prepull"
_ANNOTATION: Final = "vkprovider.io/pulls"
_FAILING: Final = frozenset({"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"})


def chosen_tags(tags: Iterable[str], config: ImagesConfig) -> list[str]:
    """Return the tags to pull: recommended, the newest of each kind, and pinned ones, as the portal's menu has them."""
    images = [MenuImage("images", version_of(tag), (), {}) for tag in set(tags)]
    images.sort(key=lambda image: menu_order(image.version))
    return [image.version.tag for image in Menu(PortalConfig(images=config), tuple(images), "images").featured()]


class PullPod(NamedTuple):
    """A Pod that pulls an image.

    Attributes:
        name, uid: Its own.
        node: Where.
        image: What, as its annotation has it.
        pulled: Whether the image is there.
        failing: What the kubelet says of a pull that fails; "" of others.
    """

    name: str
    uid: str
    node: str
    image: str
    pulled: bool = False
    failing: str = ""


def pull_pod(pod: Mapping[str, Any]) -> PullPod:
    """Return a Pod of ours as plans see it."""
    meta, status = pod["metadata"], pod.get("status", {})
    image = meta.get("annotations", {}).get(_ANNOTATION, "")
    failing, pulled = "", status.get("phase") == "Succeeded"
    for each in status.get("containerStatuses", ()):
        waiting = each.get("state", {}).get("waiting", {})
        if waiting.get("reason") in _FAILING:
            failing = f"{waiting['reason']}: {waiting.get('message', '')}".rstrip(": ")
        pulled = pulled or bool(each.get("imageID"))
    if status.get("phase") == "Failed" and not pulled:
        failing = status.get("message") or status.get("reason") or "the Pod failed"
    return PullPod(meta["name"], meta["uid"], pod["spec"].get("nodeName", ""), image, pulled, failing)


class PrepullPlan(NamedTuple):
    """What is to be done.

    Attributes:
        create: Where a Pod is to pull what.
        delete: Pods that have done their work, or that nobody wants any more.
        missing: By image, the Nodes that lack it.
        failing: By image and Node, what the kubelet says.
    """

    create: tuple[tuple[str, ImageName], ...]
    delete: tuple[PullPod, ...]
    missing: Mapping[str, tuple[str, ...]]
    failing: Mapping[tuple[str, str], str]


def plan(
    wanted: Sequence[ImageName],
    nodes: Sequence[OrdinaryNode],
    pods: Collection[PullPod],
    at_once: int,
    pulled: Collection[tuple[str, str]] = (),
) -> PrepullPlan:
    """Return what is to be done: one image at a time on a Node, and few Nodes at once.

    Args:
        wanted: The images, the most urgent first.
        nodes: All ordinary Nodes.
        pods: The Pods that pull.
        at_once: How many Nodes may pull; one whose pull fails does not count, so that it holds up no other.
        pulled: Node and image of Pods that have pulled, for Nodes that tell of some images only.
    """
    key = {image: image.digested if image.digest else image.tagged for image in wanted}
    done = {(pod.node, pod.image) for pod in pods if pod.pulled} | set(pulled)
    lacks: dict[tuple[str, str], ImageName] = {}
    for image in wanted:
        for node in nodes:
            at = node.name, key[image]
            if not node.ineligible and not node.holds(image) and (node.tells_all or at not in done):
                lacks[at] = image
    delete = tuple(pod for pod in pods if (pod.node, pod.image) not in lacks)
    kept = [pod for pod in pods if (pod.node, pod.image) in lacks]
    there = {(pod.node, pod.image) for pod in kept}
    pulling = {pod.node for pod in kept if not pod.failing}
    create = []
    missing: dict[str, tuple[str, ...]] = {image.tagged: () for image in wanted}
    for at, image in lacks.items():
        missing[image.tagged] += at[:1]
        if at not in there and at[0] not in pulling and len(pulling) < at_once:
            create.append((at[0], image))
            pulling.add(at[0])
    failing = {(lacks[pod.node, pod.image].tagged, pod.node): pod.failing for pod in kept if pod.failing}
    return PrepullPlan(tuple(create), delete, missing, failing)


def pod_body(node: str, image: ImageName, pull_secret: str = "") -> dict[str, Any]:
    """Return a Pod that pulls an image on a Node, and passes the Pod Security level `restricted`.

    Its command need not exist: the image is there when the container is made.
    """
    name = image.digested if image.digest else image.tagged
    key = hashlib.sha256(f"{node}/{name}".encode()).hexdigest()[:16]
    secrets = {"imagePullSecrets": [{"name": pull_secret}]} if pull_secret else {}
    container = {
        "name": "pull",
        "image": image.tagged,
        "imagePullPolicy": "Always",  # a tag that was moved, too; layers that are there are not fetched
        "command": ["/bin/true"],
        "resources": {"requests": {"cpu": "1m", "memory": "8Mi"}, "limits": {"memory": "64Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    spec = {
        "nodeName": node,
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 0,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        **secrets,
    }
    labels, notes = {LABEL: PROGRAM}, {_ANNOTATION: name}
    meta = {"name": f"prepull-{key}", "labels": labels, "annotations": notes}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
