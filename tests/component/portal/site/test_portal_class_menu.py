"""A definition of a class on the menu of its learners: who starts it, who sees the lab, and what an empty menu says."""

import os
from base64 import b64encode

from tests.component.controllers.looking import eventually, when
from tests.component.portal.asking import setting
from tests.component.portal.harness import PortalWorld
from tests.component.portal.people import HUB_ROLE, LEARNER_ROLE
from tests.component.portal.site.browsing import Browsing
from tests.component.portal.site.classroom import classroom
from tests.component.portal.site.test_portal_links import shows
from tests.support.apiserver import GROUP

KEY = b64encode(os.urandom(32)).decode()


async def test_learners_of_the_class_start_it_and_nobody_else_does(world: PortalWorld) -> None:
    async with (
        setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made,
        classroom(made) as room,
        Browsing(made.client.url) as alice,
    ):
        name = f"{made.definition}-small"
        path = f"{GROUP}/labletdefinitions/{name}"
        await alice.log_in(made.alice)
        assert f"{made.family}: Release 1.0.0" in (await alice.get("/labs/alice")).text
        owned = {"metadata": {"labels": {"vkprovider.io/owner-namespace": room.namespace}}}
        await world.admin.patch(path, owned)
        await eventually(lambda: shows(alice, "/labs/alice", "There is no lab that you may use."), "the menu is empty")
        page = (await alice.get("/labs/alice")).text
        assert "Ask whoever runs the labs." in page
        assert name not in page, "it is nothing that she could change"
        wanted = made.body(image_list=[f"{name}:1.0.0"])
        assert (await made.client.ask("POST", "/labs/alice/create", made.alice, wanted)).status_code == 400

        await made.people.allow("alice", HUB_ROLE)
        why = f"{name} is for the learners of the class {room.namespace} alone"
        await eventually(lambda: shows(alice, "/labs/alice", why), "who manages labs is told")
        await made.people.allow("alice", LEARNER_ROLE, room.namespace)
        await eventually(lambda: shows(alice, "/labs/alice", f"{name}: Release 1.0.0"), "it is on her menu")
        begun = await alice.post("/labs/alice/create", image=f"{name}:1.0.0", size="small")
        assert begun.status_code == 303, begun.text
        await when(lambda: made.running.replica.index.lab("alice") is not None, "the lab is known")
        lab = made.running.replica.index.lab("alice")
        assert lab is not None
        assert lab.record.class_ == room.namespace, "it is one of the class, without being asked for"
        async with Browsing(made.client.url) as teacher:
            await teacher.log_in(room.teacher)
            await eventually(lambda: shows(teacher, room.path, "/labs/alice"), "its instructor sees it")

        kept = {"inline": None, "configMap": {"namespace": room.namespace, "name": "x", "key": "cml.yaml"}}
        await world.admin.patch(path, {"spec": {"source": kept}})
        refused = await made.people.person("bob", LEARNER_ROLE)
        await made.people.allow("bob", LEARNER_ROLE, room.namespace)
        async with Browsing(made.client.url) as bob:
            await bob.log_in(refused)
            why = f"{name} belongs to the class {room.namespace}, which does not share it"
            await eventually(lambda: told(made.running.replica.choices.hindrances(), name, why), "it is shared no more")
        assert room.namespace not in {
            lab.class_
            for image in made.running.replica.choices.menu([room.namespace]).images
            for lab in image.sizes.values()
        }


async def told(hindrances: dict[str, str], name: str, why: str) -> bool:
    return f"{name} {hindrances.get(name, '')}" == why
