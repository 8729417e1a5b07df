"""What can go wrong with a call of the LDS beyond `vkprovider.platform.errors` and `vkprovider.rest.errors`."""

from vkprovider.platform.errors import Invalid
from vkprovider.rest.errors import NotDone


class Full(NotDone):
    """The deployment holds as many sessions as it can."""


class Lacking(Invalid):
    """The deployment lacks the extension that the call needs; nothing was sent."""
