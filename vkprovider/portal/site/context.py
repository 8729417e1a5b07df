"""What every view of the site is given."""

from dataclasses import dataclass

from vkprovider.portal.choices import Choices
from vkprovider.portal.index import Index
from vkprovider.portal.instructors import Instructors
from vkprovider.portal.lablets import Lablets
from vkprovider.portal.page.callers import PortalCallers
from vkprovider.portal.requests import Requests
from vkprovider.portal.site.asvisitor import AsVisitor
from vkprovider.portal.site.layout import Layout
from vkprovider.portal.site.visitors import Visitors
from vkprovider.runtime.context import Context
from vkprovider.settings.portal import PortalSettings


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
    index: Index
    lablets: Lablets
    instructors: Instructors
    requests: Requests
    choices: Choices
    callers: PortalCallers
    visitors: Visitors
    layout: Layout
    as_visitor: AsVisitor
