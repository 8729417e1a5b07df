"""The form of a user: images and sizes that may be chosen, and which workers have them already.

Which workers have an image: CML does not pull; an image definition is there, or an admin puts it there. A worker that
does not say what it has is unknown, which is never the same as missing.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from vkprovider.lablet.archives import ArchiveEntry
from vkprovider.lablet.models.parameters import ParameterSpec
from vkprovider.platform import quantities
from vkprovider.platform.messages import count, listed
from vkprovider.platform.times import minute
from vkprovider.portal.pure.config import Amounts, LabQuota, fits
from vkprovider.portal.pure.environment import asked_for, is_secret
from vkprovider.portal.pure.menu import DefinitionVersion, LabChoice, Menu, MenuImage
from vkprovider.portal.pure.nodeimages import BenchImage
from vkprovider.portal.pure.options import PARAMETER, ImageType


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


def has_all(lab: DefinitionVersion, node: MenuNode) -> bool | None:
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


def prepulls_answer(menu: Menu, nodes: Sequence[MenuNode], benches: Iterable[BenchImage] = ()) -> dict[str, Any]:
    """Return the answer of `prepulls`: the configuration, the images of the menu, the Nodes, and workbenches if any."""
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
    beside = [
        {"name": each.kind, "image": each.image, "nodes": each.on, "missing": each.missing, "unknown": each.unknown}
        for each in benches
    ]
    return {
        "config": menu.config.images.model_dump(mode="json"),
        "images": images,
        "nodes": [_node(node, menu) for node in nodes],
        **({"workbenches": beside} if beside else {}),
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


_MILLI: Final = 1000


class FormEntry(NamedTuple):
    """One choice.

    Attributes:
        value: As the request has it.
        text: For people.
        usual: Whether it is chosen unless the user chooses another.
    """

    value: str
    text: str
    usual: bool = False


class FormField(NamedTuple):
    """A variable that the definition of some image asks for.

    Attributes:
        name: As the request has it: `parameter.SEAT`.
        text: For people: the variable.
        help: What else the form says of it.
        kind: `string`, `integer`, `boolean`.
        default: Without an answer; None where a request has to give one.
        pattern: Of a whole value; "" for none, and where definitions differ.
        images: The names of the images that ask for it; empty if all do.
        secret: Whether nobody is to see it.
    """

    name: str
    text: str
    help: str
    kind: str
    default: str | None
    pattern: str
    images: tuple[str, ...]
    secret: bool


class FormOffer(NamedTuple):
    """What a form offers.

    Attributes:
        images: The images outside the dropdown.
        others: All images, for the dropdown.
        sizes: The sizes.
        fields: The variables that definitions ask for, each once.
        unavailable: Why the user can have no lab now; "" if the user can.
        hindrances: Why definitions are on no menu, for who can change it: each a name and a reason.
        saved: What the user has saved of earlier labs, from which the new one may begin.
        saved_unknown: Whether that is not known.
    """

    images: tuple[FormEntry, ...] = ()
    others: tuple[FormEntry, ...] = ()
    sizes: tuple[FormEntry, ...] = ()
    fields: tuple[FormField, ...] = ()
    unavailable: str = ""
    hindrances: tuple[str, ...] = ()
    saved: tuple[FormEntry, ...] = ()
    saved_unknown: bool = False


SAVED_OFFERED_MAX: Final = 10
"""How many saved labs are offered, the newest."""
_DEVICES_MAX: Final = 12


def saved_offer(
    found: Iterable[ArchiveEntry], offered: Collection[str], present: Mapping[str, Collection[str]]
) -> tuple[FormEntry, ...]:
    """Return what a user may begin from: what was saved of definitions on the menu, with the devices that it sets.

    Args:
        found: What the user has saved, the newest first.
        offered: The definitions on the menu.
        present: The devices of their newest versions, where they are known.
    """
    entries = []
    for each in found:
        if not each.devices or each.definition not in offered:
            continue
        known = present.get(each.definition) or each.devices
        sets = [label for label in each.devices if label in known]
        absent = [label for label in each.devices if label not in known]
        text = f"{each.definition} {each.version} of {minute(each.at)}: {listed(sets, _DEVICES_MAX) or 'no device'}"
        gone = f"; not in the newest version: {listed(absent, _DEVICES_MAX)}" if absent else ""
        entries.append(FormEntry(each.id, text + gone))
    return tuple(entries[:SAVED_OFFERED_MAX])


def offer(menu: Menu, quota: LabQuota, nodes: Sequence[MenuNode], beside: Mapping[str, str] | None = None) -> FormOffer:
    """Return the images and sizes of a form.

    Args:
        menu: With what the user may use.
        quota: Of the user.
        nodes: The Nodes that labs start on.
        beside: What to say of the workbench of each image, by reference.
    """
    if not quota.spawn:
        return FormOffer(unavailable="Your quota allows no lab.")
    if not menu.listed:
        return FormOffer(unavailable="There is no lab that you may use.")
    fitting = menu._replace(images=tuple(image for found in menu.images if (image := _fitting(found, quota))))
    if not fitting.listed:
        return FormOffer(unavailable="Your quota allows no lab of any size.")
    shown = outside_dropdown(fitting, nodes) or fitting.listed[:1]
    amounts: dict[str, Amounts] = {}
    for image in fitting.listed:
        for size, lab in image.sizes.items():
            amounts.setdefault(size, lab.amounts)
    usual = menu.usual_size(shown[0])
    sizes = sorted(amounts, key=menu.size_order)
    return FormOffer(
        tuple(FormEntry(image.reference, _titled(image, beside), image is shown[0]) for image in shown),
        tuple(FormEntry(image.reference, _titled(image, beside)) for image in fitting.listed),
        tuple(FormEntry(size, f"{size} ({in_words(amounts[size])})", size == usual) for size in sizes),
        tuple(_fields(fitting)),
    )


def _titled(image: MenuImage, beside: Mapping[str, str] | None) -> str:
    said = (beside or {}).get(image.reference)
    return f"{image.name}, {said}" if said else image.name


def _fields(menu: Menu) -> Iterable[FormField]:
    """Yield the variables that the images of a menu ask for; where they differ, the form leaves it to the answer."""
    asking: dict[str, dict[str, ParameterSpec]] = {}
    for image in menu.listed:
        for size, lab in image.sizes.items():
            for spec in asked_for(LabChoice(image, size, lab), menu.config.env):
                asking.setdefault(spec.name, {}).setdefault(image.name, spec)
    every = len(menu.listed)
    for name, by_image in asking.items():
        first, *others = by_image.values()
        alike = all(each == first for each in others)
        yield FormField(
            f"{PARAMETER}{name}",
            name,
            first.help,
            first.type if alike else "string",
            first.default if alike and len(by_image) == every else first.default or "",
            (first.pattern or "") if alike else "",
            tuple(by_image) if len(by_image) < every else (),
            is_secret(name, menu.config.secret_env),
        )


def in_words(amounts: Amounts) -> str:
    """Return amounts for people.

    >>> in_words(Amounts(4000, 12 * 2**30)), in_words(Amounts(500, 512 * 2**20))
    ('4 CPUs, 12Gi', '0.5 CPUs, 512Mi')
    """
    cpus = count(amounts.cpu_millicores // _MILLI, "CPU") if amounts.cpu_millicores % _MILLI == 0 else ""
    return f"{cpus or f'{amounts.cpus:g} CPUs'}, {quantities.format_bytes(amounts.memory_bytes)}"


def _fitting(image: MenuImage, quota: LabQuota) -> MenuImage | None:
    sizes = {size: lab for size, lab in image.sizes.items() if fits(lab.amounts, quota)}
    return image._replace(sizes=sizes) if sizes else None
