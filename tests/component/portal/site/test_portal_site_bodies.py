"""No body holds the portal up: every path that takes one refuses what it does not take, before or while it is read.

The paths are those of a replica: one that is added is asked as well.
"""

import time

from tests.component.portal.asking import Setting, setting
from tests.component.portal.harness import PortalWorld
from tests.component.portal.people import USER_ROLE
from tests.component.portal.site.browsing import Browsing
from tests.component.portal.site.test_portal_site_rights import KEY, filled, with_a_lab
from tests.support.bombs import BOMBS, Bomb, thrown

REFUSED = {303, 400, 401, 403, 404, 408, 411, 413, 415, 422, 429}
"""A path that reads no body may lead on, or answer that it is not for the sender."""
CPU_S = 0.05
TRIES = 3
"""The replica does other things meanwhile, in the same process: the cheapest of a few counts."""


def posted(made: Setting) -> list[str]:
    routes = [route for part in made.running.replica.process.parts for route in part.routes]
    return [each.path for each in routes if each.method == "POST"]


async def cost(url: str, bomb: Bomb, *headers: bytes) -> float:
    began = time.process_time()
    assert await thrown(url, bomb, *headers) in REFUSED, bomb.name
    return time.process_time() - began


async def test_a_stranger_s_bomb_costs_nothing(world: PortalWorld) -> None:
    async with setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made:
        assert "/login" in posted(made)
        for path in posted(made):
            for bomb in BOMBS:
                url = made.client.url + filled(path, username="alice")
                costs = [await cost(url, bomb, b"Sec-Fetch-Site: same-origin") for _ in range(TRIES)]
                assert min(costs) < CPU_S, (path, bomb.name, costs)


async def test_a_learner_s_bomb_costs_nothing(world: PortalWorld) -> None:
    async with setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made, Browsing(made.client.url) as carol:
        await with_a_lab(made)
        token = await made.people.person("carol", USER_ROLE)
        await carol.log_in(token)
        cookies = "; ".join(f"{name}={value}" for name, value in carol.cookies.items())
        sent = (b"Sec-Fetch-Site: same-origin", b"Cookie: " + cookies.encode())
        for path in posted(made):
            if path == "/logout":
                continue
            for bomb in BOMBS:
                url = made.client.url + filled(path, username="carol", user="carol", pod="nb-carol")
                costs = [await cost(url, bomb, *sent) for _ in range(TRIES)]
                assert min(costs) < CPU_S, (path, bomb.name, costs)
