"""What somebody may do in a class, as the API server says."""

from typing import NamedTuple

from vkprovider.platform.http.access import ResourceRight
from vkprovider.portal.api.callers import PortalCallers
from vkprovider.portal.pure.classes.asked import ACTS
from vkprovider.portal.pure.facts import UserLab
from vkprovider.portal.web.visitor import Visitor


class Powers(NamedTuple):
    """What somebody who sees a class may do with its lablets.

    Attributes:
        lablets: Write on the Pods of the class.
        labs: Write on the Pods of user labs of the class.
        ends: Extend and end user labs of the class, by the portal.
    """

    lablets: bool = False
    labs: bool = False
    ends: bool = False

    @property
    def acts(self) -> tuple[str, ...]:
        """The forms to offer."""
        usual = ACTS if self.lablets or self.labs else ("extend",) if self.ends else ()
        return (*usual, *(("end",) if self.ends else ()))

    @property
    def role(self) -> str:
        """By which the page of a class differs between visitors."""
        return "acts" if self.acts else "looks"


async def powers_of(callers: PortalCallers, visitor: Visitor, namespace: str, labs: list[UserLab]) -> Powers:
    """Ask what an instructor of a class may do with its lablets; what there are none of is not asked for.

    Who has no token here, because an ingress sends none, writes on no Pod.

    Args:
        callers: Asks the API server.
        visitor: The instructor.
        namespace: The class.
        labs: Its user labs; the portal binds the same people in each, so that one stands for all.

    Raises:
        Refused: 429, or 503.
    """
    known, writes = visitor.known, bool(visitor.token)
    lablets = writes and await callers.may(known, ResourceRight("patch", "pods", namespace))
    there = [lab.record.namespace for lab in labs if not lab.record.deleted]
    of_labs = writes and bool(there) and await callers.may(known, ResourceRight("patch", "pods", there[0]))
    return Powers(lablets, of_labs, ends=bool(there))
