"""The form of the request for a lab, as a fragment of HTML: its fields are the options of the request."""

from functools import cache
from typing import Final

import jinja2

from vkprovider.portal.pure.menu.form import FormOffer
from vkprovider.portal.pure.options import USE_DROPDOWN

_TEMPLATE: Final = "form.html"


def html(offer: FormOffer) -> str:
    """Return the form that makes an offer."""
    return _template().render(offer=offer, use_dropdown=USE_DROPDOWN)


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__, package_path="."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template(_TEMPLATE)
