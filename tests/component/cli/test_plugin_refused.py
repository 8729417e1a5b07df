"""Commands by kubectl on a lablet and its class, and whom each is refused to: the table of docs/security.md.

The API server and the provider's page refuse them to the learner of another lablet, an instructor of another class, the
account of another lablet's link, an account without a role, and who has no token.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.component.cli.desk import Desk, Result, with_page
from tests.component.cli.instructor import Instructor
from tests.component.cli.test_plugin_links import PORTAL, accounts
from tests.component.cli.test_plugin_schedule import IMAGE, LABELS, POOL, WHEN, cron_jobs, deployment
from tests.component.controllers.harness import World
from tests.component.controllers.looking import eventually
from tests.component.controllers.podhandle import Lablet
from tests.component.controllers.test_archives_page import now_s, store
from tests.component.controllers.test_console_captures import LAB
from vkprovider.lablet import names
from vkprovider.lablet.archives import Verdict
from vkprovider.lablet.deviceacts import DeviceAct

IN_THE_LAB = (
    ("config", "r1"),
    ("screen", "r1"),
    ("capture", "list"),
    ("capture", "stop"),
    ("capture", "r1-r2", "--packets=1"),
    *(("device", act, "r1", "--yes") for act in DeviceAct),
    ("reset", "--yes"),
    ("hand-in", "--yes"),
)
"""What `kubectl exec POD -c lab --` does, by the right of a console."""
SCHEDULE = ("schedule", POOL, *WHEN, "--image", IMAGE)
GRADES = ("list", "--past", "--for", "moodle")
REFUSALS = (
    "forbidden",
    "unauthorized",
    "you must be logged in",
    "answered 401",
    "answered 403",
    "clusterrole vkprovider-instructor",
)


class Class(NamedTuple):
    """A class with two lablets, a pool and a grade, and people by the paths of their kubeconfigs.

    Attributes:
        lablet: Alice's; bob has the other one, by a link as well.
        page: The argument that names the provider's page.
        alice: Herself.
        others: Who may not.
    """

    world: World
    lablet: Lablet
    page: str
    alice: str
    others: dict[str, str]


def by_token(desk: Desk, name: str, token: str) -> str:
    config = yaml.safe_load(desk.kubeconfig.read_text())
    config["users"] = [{**user, "user": {"token": token}} for user in config["users"]]
    path = desk.folder / f"kubeconfig-of-{name}"
    path.write_text(yaml.safe_dump(config))
    return str(path)


async def seat(desk: Desk, account: str) -> str:
    """Return the kubeconfig of an account of the class's namespace."""
    token = await desk.kubectl("create", "token", account)
    assert token.code == 0, token.err
    return by_token(desk, account, token.out.strip())


@pytest.fixture
async def klass(world: World, desk: Desk, tmp_path: Path) -> AsyncIterator[Class]:
    await with_page(world)
    worker, definition = await world.worker((await world.simulator()).url), await world.define(LAB)
    page = (await world.cmlworker(worker, lambda found: found.get("status", {}).get("pageURL")))["status"]["pageURL"]
    place = f"/api/v1/namespaces/{world.namespace}"
    await world.admin.patch(place, {"metadata": {"labels": {names.LABEL_LINKS: names.LINKS_ALLOWED}}})
    apps = f"/apis/apps/v1/namespaces/{world.namespace}/deployments"
    await world.admin.create(apps, deployment("warm", definition, LABELS))
    passed = Verdict(passed=True, message="score 9 of 10")
    await store(world, world.namespace, 1, username="zoe", at=now_s() + 10, grade=passed)
    mine, other = [await world.pod(definition, worker, devices=["r1", "r2", "r3"], typed=True) for _ in range(2)]
    for lablet, learner in ((mine, "alice"), (other, "bob")):
        await lablet.ready()
        await lablet.claim(lambda row: row.get("readyAt"))
        await world.admin.create(f"{place}/serviceaccounts", {"metadata": {"name": learner}})
        user = f"system:serviceaccount:{world.namespace}:{learner}"
        await desk.succeeds("assign", lablet.name, user, "--links", "--portal", PORTAL)
    await world.admin.create(f"{place}/serviceaccounts", {"metadata": {"name": "mallory"}})
    teacher = Instructor(world, desk, tmp_path, namespace="default")
    await teacher.begin()
    try:
        await teacher.grant("--page-url", page)
        link = (await accounts(world))[f"system:serviceaccount:{world.namespace}:bob"]["metadata"]["name"]
        others = {
            "the learner of another lablet": await seat(desk, "bob"),
            "an instructor of another class": await seat(desk, teacher.name),
            "the link of another lablet": await seat(desk, link),
            "a stranger": await seat(desk, "mallory"),
            "nobody": by_token(desk, "nobody", "made-up"),
        }
        yield Class(world, mine, f"--url={page}", await seat(desk, "alice"), others)
    finally:
        await teacher.end()


def is_refused(done: Result) -> bool:
    return done.code == 1 and not done.out and any(word in done.err.lower() for word in REFUSALS)


async def test_who_may_not_is_refused_each_command(klass: Class, desk: Desk) -> None:
    world, lablet = klass.world, klass.lablet
    commands = [("exec", lablet.name, "-c", "lab", "--", *words) for words in IN_THE_LAB]
    commands += [("lablet", *SCHEDULE), ("lablet", *GRADES, klass.page)]
    for words in commands:
        answers = await asyncio.gather(*(desk.kubectl(*words, KUBECONFIG=path) for path in klass.others.values()))
        for who, done in zip(klass.others, answers, strict=True):
            assert is_refused(done), (who, words, done)

    pod: Any = await world.admin.get(lablet.path)
    notes = pod["metadata"]["annotations"].keys()
    assert not notes & {names.ANNOTATION_RESET, names.ANNOTATION_DESIRED_STATE, names.ANNOTATION_DEVICE_REQUESTS}
    assert (await lablet.claim()).get("wishes", {}) == {}
    assert await cron_jobs(world) == {}

    async def lets_in() -> bool:
        return (await desk.kubectl(*commands[0], KUBECONFIG=klass.alice)).code == 0

    await eventually(lets_in, "alice's role counts")
    for words in commands[1 : len(IN_THE_LAB)]:
        done = await desk.kubectl(*words, KUBECONFIG=klass.alice)
        assert not is_refused(done), (words, done)
    assert "zoe" in await desk.succeeds(*GRADES, klass.page)
    assert (await desk.lablet(*SCHEDULE)).code == 0
    assert await cron_jobs(world) != {}
