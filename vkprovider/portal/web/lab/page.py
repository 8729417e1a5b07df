"""The page of one lab: of a user lab, or of a lablet of a class."""

from collections.abc import Iterable

from aiohttp import web
from markupsafe import Markup

from vkprovider.portal.pure.menu.form import FormOffer
from vkprovider.portal.web.lab.pieces import LabPlace
from vkprovider.portal.web.layout import Layout
from vkprovider.portal.web.live.rendered import Shown


def lab_page(
    request: web.Request,
    layout: Layout,
    shown: Shown,
    place: LabPlace,
    *,
    title: str,
    offer: FormOffer | None = None,
    class_: str = "",
    crumbs: Iterable[tuple[str, str]] = (),
) -> web.Response:
    """Return the page of a lab.

    Args:
        request: What it answers; its sender was asked for.
        layout: Makes pages.
        shown: The lab, rendered by its topic for this sender.
        place: Where the page is.
        title: Of the page.
        offer: What its reader may ask for; None if that is nothing.
        class_: The class that the reader asks a lab for.
        crumbs: Pages above this one, each with its words and its path.
    """
    found = {name.removeprefix("lab-"): Markup(html) for name, html in shown.rendered.elements.items()}  # noqa: S704 (of our templates, which escape)
    return layout.render(
        request,
        "lab/page.html",
        place=place,
        pieces=found,
        version=shown.version,
        title=title,
        offer=offer,
        class_name=class_,
        crumbs=tuple(crumbs),
    )
