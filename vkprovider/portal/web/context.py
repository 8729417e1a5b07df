"""What every view of the site is given."""

from dataclasses import dataclass

from vkprovider.platform.runtime.context import Context
from vkprovider.portal.api.callers import PortalCallers
from vkprovider.portal.service.choices import Choices
from vkprovider.portal.service.index import UserLabIndex
from vkprovider.portal.service.keeper import Instructors
from vkprovider.portal.service.lablets import OtherLablets
from vkprovider.portal.service.requests import Requests
from vkprovider.portal.settings import PortalSettings
from vkprovider.portal.web.layout import Layout
from vkprovider.portal.web.visitors import AsVisitor, Visitors


@dataclass(frozen=True, slots=True)
class SiteContext:
    """What every view of the site is given.

    Attributes:
        ctx: The replica.
        settings: The portal's.
        index: All user labs.
        lablets: All other lablets.
        instructors: Whom the RoleBindings of classes name.
        requests: Makes, deletes and extends labs.
        choices: The menu and the quotas.
        callers: Says what somebody may.
        visitors: Finds out who asks; wraps handlers of forms.
        layout: Makes pages.
        as_visitor: Reaches the API server in a visitor's name.
    """

    ctx: Context
    settings: PortalSettings
    index: UserLabIndex
    lablets: OtherLablets
    instructors: Instructors
    requests: Requests
    choices: Choices
    callers: PortalCallers
    visitors: Visitors
    layout: Layout
    as_visitor: AsVisitor
