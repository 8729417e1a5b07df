"""Images on ordinary Nodes: their names, which Nodes hold one, and where that of a workbench is there."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, NamedTuple, Self

import msgspec

from vkprovider.lablet import names
from vkprovider.platform.errors import InputError, shorten
from vkprovider.platform.objects import Node
from vkprovider.platform.reasons import StartReason
from vkprovider.portal.pure.workbench import WorkbenchConfig

HUB: Final = "docker.io"
"""The registry of names that have none."""
_HUB_API: Final = "registry-1.docker.io"
_DIGEST: Final = r"sha256:[0-9a-f]{64}"
_PART: Final = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_NAME = re.compile(
    rf"(?P<path>{_PART}(?:/{_PART})*)(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{{0,127}}))?(?:@(?P<digest>{_DIGEST}))?"
)
_HOST = re.compile(r"localhost(?::\d{1,5})?|[A-Za-z0-9.-]+(?:\.[A-Za-z0-9.-]+|:\d{1,5})(?::\d{1,5})?")
_LISTED_MAX: Final = 50
"""How many images a kubelet tells of, unless its nodeStatusMaxImages says otherwise: the largest ones."""


class ImageName(NamedTuple):
    """The name of an image, with nothing left out.

    Attributes:
        registry: `docker.io`, `quay.io`, `localhost:5000`.
        path: `library/python`.
        tag: "" where a digest alone names it.
        digest: `sha256:…`; "" while it is unknown.
    """

    registry: str
    path: str
    tag: str = ""
    digest: str = ""

    @property
    def repository(self) -> str:
        """The name without version."""
        return f"{self.registry}/{self.path}"

    @property
    def tagged(self) -> str:
        """The name as a Pod has it: by tag, else by digest."""
        return f"{self.repository}:{self.tag}" if self.tag else self.digested

    @property
    def digested(self) -> str:
        """The name by digest."""
        return f"{self.repository}@{self.digest}"

    @property
    def api_host(self) -> str:
        """Host and port of the registry's API."""
        return _HUB_API if self.registry == HUB else self.registry

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a name as a Pod may write it.

        >>> ImageName.parse("python").tagged, ImageName.parse("localhost:5000/a/b:1").path
        ('docker.io/library/python:latest', 'a/b')

        Raises:
            InputError: It is none.
        """
        host, slash, rest = text.partition("/")
        if not slash or not _HOST.fullmatch(host):
            host, rest = HUB, text
        found = _NAME.fullmatch(rest)
        if found is None:
            raise InputError(StartReason.SETTING_INVALID, f"{shorten(text, 80)!r} is no name of an image")
        path = found["path"]
        if host in {HUB, "index.docker.io"}:
            host, path = HUB, path if "/" in path else f"library/{path}"
        tag, digest = found["tag"] or "", found["digest"] or ""
        return cls(host, path, tag or ("" if digest else "latest"), digest)


class OrdinaryNode(NamedTuple):
    """A Node that runs containers.

    Attributes:
        name: Its name.
        images: The names of each image that it tells of.
        ineligible: Why it pulls nothing; "" if it may.
    """

    name: str
    images: tuple[frozenset[str], ...] = ()
    ineligible: str = ""

    @property
    def tells_all(self) -> bool:
        """Whether an image that it does not tell of is not there."""
        return len(self.images) < _LISTED_MAX

    def holds(self, image: ImageName) -> bool:
        """Return whether it has an image: by its digest, or by its tag where either has no digest."""
        for its in self.images:
            digested = any("@" in name for name in its)
            if image.digest and digested:
                if image.digested in its:
                    return True
            elif image.tagged in its:
                return True
        return False


def ordinary_node(node: Node, selector: Mapping[str, str]) -> OrdinaryNode | None:
    """Return a Node with its images; None of one that is not to hold images, such as that of a worker."""
    labels = node.metadata.labels
    if labels.get(names.LABEL_COMPONENT) == names.COMPONENT_VNODE or not selector.items() <= labels.items():
        return None
    images = tuple(frozenset(image.names) for image in node.status.images)
    taints = [taint.key for taint in node.spec.taints if taint.effect in {"NoSchedule", "NoExecute"}]
    why = "cordoned" if node.spec.unschedulable else "" if node.is_ready else "not Ready"
    return OrdinaryNode(node.metadata.name, images, why or (f"taint {taints[0]}" if taints else ""))


class BenchImage(NamedTuple):
    """The image of a workbench on the Nodes that may run it.

    Attributes:
        kind: The workbench.
        image: Its image.
        on: The Nodes that hold it.
        missing: Those that do not.
        unknown: Those that tell of other images only, and may hold it.
    """

    kind: str
    image: str
    on: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """What a menu says of it.

        >>> BenchImage("pyats", "lab:1", ("a",), ("b",)).words, BenchImage("pyats", "lab:1", (), ("b",)).words
        ('with a workbench, ready on 1 of 2 nodes', 'with a workbench, which is loaded first')
        """
        every = len(self.on) + len(self.missing) + len(self.unknown)
        if len(self.on) == every or self.unknown:
            return "with a workbench"
        return f"with a workbench, ready on {len(self.on)} of {every} nodes" if self.on else _FIRST


_FIRST: Final = "with a workbench, which is loaded first"


def bench_image(kind: str, config: WorkbenchConfig, nodes: Iterable[Node]) -> BenchImage:
    """Return where the image of a workbench is; nowhere if its name is none.

    Args:
        kind: The name of the workbench.
        config: What it is.
        nodes: All ordinary Nodes.
    """
    image = _parsed(config.image)
    if image is None:
        return BenchImage(kind, config.image)
    selector = {"kubernetes.io/os": "linux", **config.node_selector}
    found = (ordinary_node(each, selector) for each in nodes)
    may_run = sorted((each for each in found if each is not None and not each.ineligible), key=lambda each: each.name)
    on = tuple(each.name for each in may_run if each.holds(image))
    lacking = [each for each in may_run if not each.holds(image)]
    missing = tuple(each.name for each in lacking if each.tells_all)
    return BenchImage(kind, config.image, on, missing, tuple(each.name for each in lacking if not each.tells_all))


def keeping_images(images: Collection[str]) -> Callable[[Node], Node]:
    """Return what leaves those images of a Node that some name; all of a Node that may hold more than it tells."""
    found = [image for each in images if (image := _parsed(each)) is not None]
    prefixes = tuple(f"{image.repository}{mark}" for image in found for mark in ":@")

    def slim(node: Node) -> Node:
        told = node.status.images
        kept = [each for each in told if any(name.startswith(prefixes) for name in each.names)]
        if not kept and len(told) >= _LISTED_MAX:
            return node
        return msgspec.structs.replace(node, status=msgspec.structs.replace(node.status, images=kept))

    return slim


def _parsed(text: str) -> ImageName | None:
    try:
        return ImageName.parse(text)
    except InputError:
        return None
