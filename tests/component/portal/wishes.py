"""What users ask for in tests."""

from typing import Any

from tests.component.portal.harness import PortalWorld, Running
from vkprovider.portal.pure.options import Grounds, ImageBy, LabWish
from vkprovider.portal.service.requests import Accepted, Rejected


def wanted(definition: str, **more: Any) -> LabWish:
    """Return the wish for a lab of a definition."""
    return LabWish(ImageBy.REFERENCE, f"{definition}:1.0.0", **more)


async def ask(world: PortalWorld, running: Running, user: str, definition: str, **more: Any) -> Accepted:
    """Ask a replica for a lab of a user."""
    return await running.replica.requests.create(
        world.caller(user), wanted(definition, **more), running.replica.choices.menu()
    )


async def refused(world: PortalWorld, running: Running, user: str, definition: str, **more: Any) -> Grounds:
    """Return the grounds on which a replica refuses a lab to a user."""
    try:
        accepted = await ask(world, running, user, definition, **more)
    except Rejected as error:
        return error.rejection.grounds
    raise AssertionError(f"{accepted} is not refused")
