"""The form of the request for a lab, as a browser sends it. Pure."""

from collections.abc import Mapping

from vkprovider.portal.pure import options
from vkprovider.portal.pure.options import WantedLab
from vkprovider.portal.pure.rejections import Rejection

_FIELDS = {"image": "image_list", "size": "size", "class": "class"}
"""The option of a request that a field of the form is."""


def wanted_of(form: Mapping[str, object]) -> WantedLab | Rejection:
    """Return the lab that a form asks for, or why it asks for none."""
    found = {option: form[field] for field, option in _FIELDS.items() if form.get(field)}
    wanted = options.parse({"options": found})
    return wanted if isinstance(wanted, WantedLab) else wanted[0]
