"""The process of the portal: its list of parts."""

from dataclasses import dataclass
from typing import Final

from vkprovider.api import names
from vkprovider.app.settings import PortalProcessSettings
from vkprovider.runtime.context import Context, Program
from vkprovider.runtime.membership import Membership
from vkprovider.runtime.process import Process

PORTAL: Final = Program("vkprovider-portal", f"{names.GROUP}/portal-replica")
"""The portal: its replicas share out operations of user labs."""


@dataclass(frozen=True, slots=True)
class PortalProcess:
    """One replica of the portal: its process, and what tests and the page look at."""

    ctx: Context
    process: Process


def portal_process(ctx: Context, settings: PortalProcessSettings) -> PortalProcess:
    """Build a replica; nothing is read or written before its process runs."""
    membership = Membership(ctx, settings.replica.lease_ttl_s)
    return PortalProcess(ctx, Process(ctx, membership, ()))
