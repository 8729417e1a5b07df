"""What the form of a user offers: images and sizes that the user may use and that fit the quota."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from vkprovider.platform import quantities
from vkprovider.platform.wording import count
from vkprovider.portal.pure.menu.menu import Menu, MenuImage
from vkprovider.portal.pure.menu.prepulled import MenuNode, outside_dropdown
from vkprovider.portal.pure.quota import Amounts, LabQuota, fits

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


class FormOffer(NamedTuple):
    """What a form offers.

    Attributes:
        images: The images outside the dropdown.
        others: All images, for the dropdown.
        sizes: The sizes.
        unavailable: Why the user can have no lab now; "" if the user can.
    """

    images: tuple[FormEntry, ...] = ()
    others: tuple[FormEntry, ...] = ()
    sizes: tuple[FormEntry, ...] = ()
    unavailable: str = ""


def offer(menu: Menu, quota: LabQuota, nodes: Sequence[MenuNode]) -> FormOffer:
    """Return the images and sizes of a form.

    Args:
        menu: With what the user may use.
        quota: Of the user.
        nodes: The Nodes that labs start on.
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
        tuple(FormEntry(image.reference, image.name, image is shown[0]) for image in shown),
        tuple(FormEntry(image.reference, image.name) for image in fitting.listed),
        tuple(FormEntry(size, f"{size} ({in_words(amounts[size])})", size == usual) for size in sizes),
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
