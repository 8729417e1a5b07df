"""Requests in a visitor's name carry the visitor's token, and no credentials of the portal's."""

import asyncio
from pathlib import Path

import pytest
import yaml

from tests.component.portal.harness import PortalWorld
from tests.component.portal.people import People
from vkprovider.platform.errors import Forbidden, Unauthorized
from vkprovider.platform.http.answers import TokenMissing
from vkprovider.platform.kube.api import Api
from vkprovider.platform.settings import KubeSettings
from vkprovider.portal.web.visitors import AsVisitor


async def test_who_has_a_certificate_acts_as_the_visitor_all_the_same(world: PortalWorld) -> None:
    """The API server looks at certificates first: with that of the admin along, every visitor would be the admin."""
    admin = yaml.safe_load(await asyncio.to_thread(Path(world.server.kubeconfig).read_text))
    assert any("client-certificate" in key for key in admin["users"][0]["user"]), "else this test shows nothing"
    people = People(world.admin)
    await people.open()
    token = (await people.person("alice"))["Authorization"].removeprefix("Bearer ")
    as_visitor = AsVisitor(KubeSettings(kubeconfig=str(world.server.kubeconfig)), "replica")
    async with as_visitor.client(token) as kube:
        review = await Api(kube, "").review_self()
        assert review.status.user_info.username == f"{people.prefix}alice"
        with pytest.raises(Forbidden):
            await kube.get("/api/v1/namespaces/kube-system/secrets")


async def test_a_token_that_is_unknown_or_missing_is_nobody(world: PortalWorld) -> None:
    as_visitor = AsVisitor(KubeSettings(kubeconfig=str(world.server.kubeconfig)), "replica")
    async with as_visitor.client("made-up") as kube:
        with pytest.raises(Unauthorized):
            await Api(kube, "").review_self()
    with pytest.raises(TokenMissing):
        async with as_visitor.client(""):
            pass
