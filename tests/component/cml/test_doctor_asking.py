"""What `vkprovider doctor` asks a worker, and what it makes of the answers."""

import asyncio
import time
from email.utils import formatdate

import pytest
from aiohttp import web

from tests.component.cml.conftest import MiniCml, reply
from vkprovider.cml.spi import Credentials
from vkprovider.lablet.models.worker import CMLWorkerSpec
from vkprovider.labs.checks.asking import ask
from vkprovider.labs.checks.workers import Licence
from vkprovider.platform.errors import InputError, Unauthorized

ADMIN = Credentials("admin", "right")
LICENSED = '{"registration": {"status": "COMPLETED"}, "authorization": {"status": "IN_COMPLIANCE"}, "features": []}'


@pytest.fixture
def licensed(mini: MiniCml) -> MiniCml:
    mini.replies["/users/admin/id"] = reply(200, '"0815"')
    mini.replies["/users/0815"] = reply(200, '{"id": "0815", "username": "admin", "admin": true}')
    mini.replies["/licensing"] = reply(200, LICENSED)
    mini.replies["/diagnostics/licensing"] = reply(200, '{"quota": 20, "started": 3}')
    return mini


def spec_of(mini: MiniCml) -> CMLWorkerSpec:
    return CMLWorkerSpec(url=mini.url)


async def test_all_figures_are_reported(licensed: MiniCml) -> None:
    probe = await ask(spec_of(licensed), ADMIN)
    assert (probe.version, probe.error, probe.admin) == ("2.9.1+build.7", None, True)
    assert probe.licence == Licence("COMPLETED", "IN_COMPLIANCE", reserved=False, quota=20)
    assert probe.skew_s is not None
    assert abs(probe.skew_s) < 2, "one clock, shown in whole seconds"
    assert not [line for line in licensed.seen if line.startswith(("PUT", "PATCH", "DELETE"))]


async def test_a_clock_that_is_behind(licensed: MiniCml) -> None:
    hour_ago = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() - 3600))
    licensed.replies["/labs"] = reply(200, "[]", Date=hour_ago)
    probe = await ask(spec_of(licensed), ADMIN)
    assert probe.skew_s == pytest.approx(-3600, abs=5)


async def test_a_slow_answer_tells_of_no_skew(licensed: MiniCml) -> None:
    """A worker read its clock at some time between question and answer, nobody knows when."""

    async def slow(_: web.Request) -> web.StreamResponse:
        date = formatdate(usegmt=True)
        await asyncio.sleep(2.5)
        return web.Response(text="[]", content_type="application/json", headers={"Date": date})

    licensed.replies["/labs"] = slow
    probe = await ask(spec_of(licensed), ADMIN)
    assert probe.skew_s == pytest.approx(0, abs=0.55), "whole seconds"


async def test_a_figure_that_the_user_may_not_read_is_unknown(licensed: MiniCml) -> None:
    for path in ("/users/admin/id", "/licensing", "/diagnostics/licensing"):
        licensed.replies[path] = reply(403, '{"code": 403, "description": "Access denied"}')
    probe = await ask(spec_of(licensed), ADMIN)
    assert (probe.version, probe.error, probe.admin, probe.licence) == ("2.9.1+build.7", None, None, None)


async def test_a_name_that_fits_no_path_is_not_asked_for(licensed: MiniCml) -> None:
    probe = await ask(spec_of(licensed), Credentials("a/../b", "right"))
    assert (probe.error, probe.admin) == (None, None)


async def test_a_refused_login(mini: MiniCml) -> None:
    probe = await ask(spec_of(mini), Credentials("admin", "wrong"))
    assert probe.version == "2.9.1+build.7"
    assert isinstance(probe.error, Unauthorized)


async def test_without_credentials_only_the_version_is_asked(mini: MiniCml) -> None:
    probe = await ask(spec_of(mini), None)
    assert (probe.version, probe.error, mini.logins) == ("2.9.1+build.7", None, 0)


async def test_an_unusable_url() -> None:
    probe = await ask(CMLWorkerSpec(url="ftp://w"), ADMIN)
    assert isinstance(probe.error, InputError)
