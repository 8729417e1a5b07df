"""Which labs workers have all image definitions for, and which lack some: the answers of `images` and `prepulls`.

CML does not pull: an image definition is there, or an admin puts it there. A worker that does not say what it has is
unknown, which is never the same as missing.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from vkprovider.portal.pure.menu.menu import Menu, MenuImage, SizedLab
from vkprovider.portal.pure.options import ImageType


class MenuNode(NamedTuple):
    """The Node of a worker.

    Attributes:
        name: The Node's.
        environment: The environment of the worker.
        comment: Why no lab is started on it; "" if labs are.
        images: Its image definitions; None while they are unknown.
    """

    name: str
    environment: str
    comment: str = ""
    images: frozenset[str] | None = None


class _Found(NamedTuple):
    """Where the image definitions of an image are.

    Attributes:
        on: The Nodes that have all of them.
        missing: The Nodes that lack some.
        unknown: Whether that is not known of some Node, or of some size.
    """

    on: tuple[str, ...]
    missing: tuple[str, ...]
    unknown: bool

    @property
    def prepulled(self) -> bool | None:
        """Whether all Nodes that start such labs have them; None if that is not known."""
        return False if self.missing else None if self.unknown or not self.on else True


def has_all(lab: SizedLab, node: MenuNode) -> bool | None:
    """Return whether a worker has all image definitions of a lab; None if that is not known."""
    if lab.image_definitions is None or node.images is None:
        return None
    return lab.image_definitions <= node.images


def prepulled(image: MenuImage, nodes: Iterable[MenuNode]) -> bool | None:
    """Return whether all workers that start such labs have the image definitions; None if that is not known."""
    return _find(image, nodes).prepulled


def outside_dropdown(menu: Menu, nodes: Sequence[MenuNode]) -> list[MenuImage]:
    """Return the images outside the dropdown, without those that a worker is known to lack."""
    return [image for image in menu.featured() if prepulled(image, nodes) is not False]


def images_answer(menu: Menu, nodes: Sequence[MenuNode]) -> dict[str, Any]:
    """Return the answer of `images`: the image of each type, then all of them."""
    typed = {str(image_type): menu.typed(image_type) for image_type in ImageType}
    shown = {key: _image(image, nodes) if image is not None else None for key, image in typed.items()}
    return {**shown, "all": [_image(image, nodes) for image in menu.listed]}


def prepulls_answer(menu: Menu, nodes: Sequence[MenuNode]) -> dict[str, Any]:
    """Return the answer of `prepulls`: the configuration, the images of the menu, and the Nodes."""
    images: Mapping[str, list[dict[str, Any]]] = {"prepulled": [], "pending": [], "unknown": []}
    for image in menu.featured():
        found = _find(image, nodes)
        shown = {**_names(image), "nodes": list(found.on)}
        match found.prepulled:
            case True:
                images["prepulled"].append(shown)
            case False:
                images["pending"].append({**shown, "missing": list(found.missing)})
            case None:
                images["unknown"].append(shown)
    return {
        "config": menu.config.images.model_dump(mode="json"),
        "images": images,
        "nodes": [_node(node, menu) for node in nodes],
    }


def _find(image: MenuImage, nodes: Iterable[MenuNode]) -> _Found:
    on, missing, unknown = [], [], False
    for node in nodes:
        labs = [lab for lab in image.sizes.values() if lab.environment == node.environment]
        if node.comment or not labs:
            continue
        has = {has_all(lab, node) for lab in labs}
        if False in has:
            missing.append(node.name)
        elif None in has:
            unknown = True
        else:
            on.append(node.name)
    return _Found(tuple(on), tuple(missing), unknown)


def _names(image: MenuImage) -> dict[str, Any]:
    digest = next(iter(image.sizes.values())).digest
    return {
        "reference": image.reference,
        "tag": image.version.tag,
        "name": image.name,
        "digest": digest or None,
    }


def _image(image: MenuImage, nodes: Iterable[MenuNode]) -> dict[str, Any]:
    return {**_names(image), "aliases": list(image.aliases), "prepulled": prepulled(image, nodes)}


def _node(node: MenuNode, menu: Menu) -> dict[str, Any]:
    """Return a Node as `prepulls` shows it; `cached` is null while its images are unknown."""
    labs = {image.reference: list(image.sizes.values()) for image in menu.listed}
    cached = [reference for reference, sizes in labs.items() if all(has_all(lab, node) for lab in sizes)]
    shown: dict[str, Any] = {"name": node.name, "eligible": not node.comment}
    if node.comment:
        shown["comment"] = node.comment
    return {**shown, "cached": cached if node.images is not None else None}
