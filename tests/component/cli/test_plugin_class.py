"""`kubectl lablet assign --from-file` on a real API server; a task of the test acts as a Deployment's controllers."""

import asyncio
import contextlib
import csv
import io
import json
import re
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.component.cli.desk import PATIENCE_S, Desk, with_page
from tests.component.cli.instructor import RBAC, Instructor
from tests.component.controllers.harness import World
from tests.component.controllers.looking import eventually
from tests.component.controllers.test_sessions_flow import TOKEN
from tests.support.faultyapi import Fault
from tests.support.ptys import Pty
from tests.support.topologies import topology
from vkprovider.lablet.names import LABEL_LINKS, LINKS_ALLOWED
from vkpsim.lds.server import LdsSimulator
from vkpsim.lds.settings import LdsSettings

POOL, USER, UNTIL = "vkprovider.io/pool", "vkprovider.io/username", "vkprovider.io/timeslot-end"
NAME = "vkprovider.io/shown-name"
PORTAL = "https://labs.example.com"
LABELS = {"app": "netlab", POOL: "warm"}


class Warm:
    """A pool: a Deployment, its ReplicaSet, and lablets that are Ready."""

    def __init__(self, world: World) -> None:
        self.world = world
        apps = f"/apis/apps/v1/namespaces/{world.namespace}"
        self.path, self.sets = f"{apps}/deployments/warm", f"{apps}/replicasets"
        self.pods_path = f"/api/v1/namespaces/{world.namespace}/pods"

    async def pods(self) -> list[dict[str, Any]]:
        return await self.world.admin.items(self.pods_path)

    async def given(self) -> dict[str, str]:
        """Learner: the Pod; fails if one has two."""
        found = [(pod["metadata"]["annotations"].get(USER), pod["metadata"]["name"]) for pod in await self.pods()]
        mine = [(user, name) for user, name in found if user]
        assert len(dict(mine)) == len(mine)
        return dict(mine)

    async def deployment(self) -> dict[str, Any]:
        found = await self.world.admin.get(self.path)
        assert found is not None
        return found

    async def replicas(self) -> int:
        return int((await self.deployment())["spec"]["replicas"])

    async def allow_links(self) -> None:
        """Have learners of the namespace get links."""
        labels = {"metadata": {"labels": {LABEL_LINKS: LINKS_ALLOWED}}}
        await self.world.admin.patch(f"/api/v1/namespaces/{self.world.namespace}", labels)

    async def act(self) -> None:
        """Release Pods that have left the pool, delete one that is too much, and report, as the controllers do."""
        while True:
            mine = []
            for pod in await self.pods():
                meta = pod["metadata"]
                if not any(owner["kind"] == "ReplicaSet" for owner in meta.get("ownerReferences", [])):
                    continue
                if POOL in meta["labels"]:
                    mine.append(meta["name"])
                else:
                    body = {"metadata": {"ownerReferences": None}}
                    await self.world.admin.patch(f"{self.pods_path}/{meta['name']}", body)
            found = await self.deployment()
            for name in mine[found["spec"]["replicas"] :]:
                await self.world.admin.delete(f"{self.pods_path}/{name}")
            status = {"observedGeneration": found["metadata"]["generation"], "replicas": len(mine)}
            await self.world.admin.patch(f"{self.path}/status", {"status": status})
            await asyncio.sleep(0.1)


@pytest.fixture
async def warm(world: World) -> AsyncIterator[Warm]:
    """A pool of four."""
    await world.replica()
    worker = await world.worker()
    definition = await world.define(topology({"r1": "alpine"}, {"r1": ["serial:4001"]}))
    pool, admin = Warm(world), world.admin
    template = {
        "metadata": {"labels": LABELS},
        "spec": {"runtimeClassName": definition, "containers": [{"name": "lab", "image": definition}]},
    }
    spec = {"replicas": 4, "selector": {"matchLabels": LABELS}, "template": template}
    await admin.create(pool.path.rpartition("/")[0], {"metadata": {"name": "warm"}, "spec": spec})
    made = await admin.create(pool.sets, {"metadata": {"name": "warm-1"}, "spec": spec})
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "warm-1", "controller": True}
    owner["uid"] = made["metadata"]["uid"]
    lablets = [await world.pod(definition, worker, labels=LABELS) for _ in range(4)]
    for lablet in lablets:
        await lablet.ready()
        await admin.patch(lablet.path, {"metadata": {"ownerReferences": [owner]}})
    acting = asyncio.create_task(pool.act())
    yield pool
    acting.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await acting
    for path in (pool.path, f"{pool.sets}/warm-1"):
        await admin.delete(path)


def names(folder: Path, *learners: str) -> str:
    path = folder / "names.csv"
    path.write_text("\n".join(["learner,seat", *(f"{learner},1" for learner in learners)]))
    return str(path)


async def test_killed_after_each_write_and_run_again(warm: Warm, desk: Desk, tmp_path: Path) -> None:
    """Two learners are eight writes; each kill comes when the API server has stored one and before the caller knows."""
    api, kubeconfig = await desk.proxied()
    words = ["lablet", "assign", "deployment/warm", "--from-file", names(tmp_path, "alice", "bob"), "--until", "90m"]
    words.append(f"--kubeconfig={kubeconfig}")
    killed = 0
    while True:
        process = await desk.start(*words)

        async def kill(process: asyncio.subprocess.Process = process) -> None:
            process.kill()

        writes = r"^(PATCH .*/(pods|deployments)/|POST .*/(roles|rolebindings)$)"
        fault: Fault = api.fault(writes, count=1, then=kill)
        async with asyncio.timeout(PATIENCE_S):
            out, err = await process.communicate()
        api.heal()
        if not fault.met:
            break
        killed += 1
        assert len(await warm.given()) <= 2
        assert await warm.replicas() in {4, 2}
    assert 5 <= killed <= 8, "the writes of Pods are sent together, and so are those of roles"
    assert process.returncode == 0, err
    given = await warm.given()
    assert set(given) == {"alice", "bob"}
    assert {line.split()[0] for line in out.decode().splitlines()} == {"LEARNER", "alice", "bob"}
    assert await warm.replicas() == 2
    assert "cli.vkprovider.io/giving" not in (await warm.deployment())["metadata"].get("annotations", {})
    assert len(await warm.pods()) == 4, "none was deleted"
    bindings = await warm.world.admin.items(f"{RBAC}/namespaces/{warm.world.namespace}/rolebindings")
    assert {each["metadata"]["name"].partition(":")[2]: each["subjects"][0]["name"] for each in bindings} == {
        pod: learner for learner, pod in given.items()
    }

    before = len(api.asked)
    again = await desk.lablet(*words[1:], "-o", "csv", "--portal", "https://labs.example.com/")
    assert [asked.line for asked in api.asked[before:] if asked.method != "GET"] == [], "nothing changes"
    rows = {row["learner"]: row for row in csv.DictReader(io.StringIO(again.out.removeprefix("\ufeff")))}
    assert {learner: row["name"] for learner, row in rows.items()} == given
    assert all("r1 serial 198.51.100.7:" in row["access"] for row in rows.values())
    pages = f"https://labs.example.com/lablets/{warm.world.namespace}"
    assert {row["link"] for row in rows.values()} == {f"{pages}/{pod}" for pod in given.values()}
    for pod in await warm.pods():
        assert (UNTIL in pod["metadata"]["annotations"]) is (USER in pod["metadata"]["annotations"])


async def test_links_are_printed_whatever_cannot_be_read_after_them(warm: Warm, desk: Desk, tmp_path: Path) -> None:
    """They can be read only once: another run finds that there are links already."""
    await warm.allow_links()
    api, kubeconfig = await desk.proxied()
    api.fault(r"^GET .*/rolebindings", count=None, status=429)
    words = ["deployment/warm", "--from-file", names(tmp_path, "alice", "bob"), "--links", "--portal", PORTAL]
    given = await desk.lablet("assign", *words, f"--kubeconfig={kubeconfig}")
    assert given.code == 0, given
    assert given.out.count(f"{PORTAL}/link#") == 2, given
    assert "who may open the lablet of alice, bob is not written yet" in given.err
    assert "whether all of them attend the class is not known" in given.err


async def test_two_instructors_at_once(warm: Warm, desk: Desk, tmp_path: Path) -> None:
    """Their lists overlap, and together they name more learners than there are lablets."""
    lists = []
    for number, learners in enumerate((("alice", "bob", "carol"), ("carol", "dave", "alice", "erin"))):
        (tmp_path / str(number)).mkdir()
        lists.append(names(tmp_path / str(number), *learners))
    results = await asyncio.gather(*(desk.lablet("assign", "deployment/warm", "--from-file", one) for one in lists))
    given = await warm.given()
    assert len(given) == 4, results
    assert await warm.replicas() == 0
    assert len(await warm.pods()) == 4
    left = {"alice", "bob", "carol", "dave", "erin"} - set(given)
    assert len(left) == 1
    assert sorted(result.code for result in results) == ([1, 1] if left & {"alice", "carol"} else [0, 1])
    says = "".join(result.err for result in results)
    assert f"{left.pop()} got none: deployment/warm has no free lablet" in says


async def test_a_list_is_looked_at_and_nothing_is_given(warm: Warm, desk: Desk, tmp_path: Path) -> None:
    await desk.succeeds("assign", "deployment/warm", "alice")
    before, replicas = await warm.given(), await warm.replicas()
    file = names(tmp_path, "alice", "bob", "Alice", "dave", "erin", "fay")
    said = await desk.succeeds("assign", "deployment/warm", "--from-file", file, "--dry-run")
    assert said.splitlines() == [
        "6 names, 3 free: 1 has one already, 2 lack one: add 1",
        f"has one: alice ({before['alice']})",
        *(f"gets one: {learner}" for learner in ("bob", "Alice", "dave")),
        *(f"lacks one: {learner}" for learner in ("erin", "fay")),
        f"to add 1: kubectl scale deployment/warm --replicas=5 -n {warm.world.namespace}",
        "alice and Alice differ in case only, and are different people to the cluster",
        "nothing was given (dry run)",
    ]
    assert (await warm.given(), await warm.replicas()) == (before, replicas)


async def test_names_for_people_stand_beside_the_users(warm: Warm, desk: Desk, tmp_path: Path) -> None:
    """A list brings them along, they go with the lablet, and the same list with other names writes these."""
    file = tmp_path / "moodle.csv"
    file.write_text("First name,Last name,Username\nAnna,Müller,zz1\nBert,Adams,zz2\nCem,,zz3\n", encoding="cp1252")
    said = await desk.succeeds("assign", "deployment/warm", "--from-file", str(file), "--dry-run")
    assert "gets one: zz1 (Müller, Anna)" in said
    out = await desk.succeeds("assign", "deployment/warm", "--from-file", str(file))
    lines = [re.split("   +", line) for line in out.splitlines()]
    assert [line[:2] for line in lines] == [
        ["LEARNER", "SHOWN NAME"],
        ["zz1", "Müller, Anna"],
        ["zz2", "Adams, Bert"],
        ["zz3", "Cem"],
    ]
    listed = [re.split("   +", line)[:2] for line in (await desk.succeeds("list", "--sort", "learner")).splitlines()]
    assert listed[1:4] == [["zz2", "Adams, Bert"], ["zz3", "Cem"], ["zz1", "Müller, Anna"]]
    assert {pod["metadata"]["annotations"].get(NAME) for pod in await warm.pods()} == {
        *("Müller, Anna", "Adams, Bert", "Cem", None)
    }
    file.write_text("username,name\nzz1,Anna Schmidt\nzz2,\n")
    looked = await desk.succeeds("assign", "deployment/warm", "--from-file", str(file), "--dry-run")
    assert "2 names, 1 free: 2 have one already, names change" in looked
    await desk.succeeds("assign", "deployment/warm", "--from-file", str(file))
    await desk.succeeds("assign", "deployment/warm", "zz3", "--name", "  Cem\tAksoy ")
    items = json.loads(await desk.succeeds("list", "-o", "json"))["items"]
    assert {each["user"]: each["shown"] for each in items if each["user"]} == {
        "zz1": "Anna Schmidt",
        "zz2": "Adams, Bert",
        "zz3": "Cem Aksoy",
    }
    refused = await desk.lablet("assign", "deployment/warm", "--from-file", str(file), "--name", "Bob")
    assert (refused.code, "--name is for one USER" in refused.err) == (2, True)


async def test_what_is_refused_and_a_pool_that_is_refilled(warm: Warm, desk: Desk, tmp_path: Path) -> None:
    file = names(tmp_path, "alice")
    hpas = f"/apis/autoscaling/v2/namespaces/{warm.world.namespace}/horizontalpodautoscalers"
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "warm"}
    spec = {"scaleTargetRef": target, "maxReplicas": 9, "metrics": []}
    await warm.world.admin.create(hpas, {"metadata": {"name": "h"}, "spec": spec})
    scaled = await desk.lablet("assign", "deployment/warm", "--from-file", file)
    assert (scaled.code, scaled.out) == (1, "")
    assert "horizontalpodautoscaler/h sets the replicas of deployment/warm: give with --refill" in scaled.err
    assert "alice" in await desk.succeeds("assign", "deployment/warm", "--from-file", file, "--refill")
    before = await warm.given()
    assert await desk.succeeds("assign", "deployment/warm", "alice") == f"pod/{before['alice']} assigned to alice\n"
    assert await warm.given() == before, "one who has one keeps it"
    assert (set(await warm.given()), await warm.replicas()) == ({"alice"}, 4)
    await warm.world.admin.delete(f"{hpas}/h")
    for words, says in (
        (("assign", "deployment/nothing", "--from-file", file), "deployment/nothing not found in namespace"),
        (("assign", "a-pod", "--from-file", file), "write deployment/NAME instead of a-pod"),
        (("assign", "deployment/warm", "alice", "--from-file", file), "name a USER, or a file"),
        (("assign", "deployment/warm", "alice", "--refill"), "--refill, --dry-run and -o are for --from-file"),
        (("assign", "deployment/warm", "--from-file", "/nowhere"), "/nowhere cannot be read"),
    ):
        refused = await desk.lablet(*words)
        assert refused.code in {1, 2}
        assert says in refused.err
    annotation = {"metadata": {"annotations": {"cli.vkprovider.io/giving": json.dumps({"pod": 1})}}}
    await warm.world.admin.patch(warm.path, annotation)
    damaged = await desk.lablet("assign", "deployment/warm", "--from-file", file)
    assert "annotation cli.vkprovider.io/giving of deployment/warm cannot be read" in damaged.err
    assert "cli.vkprovider.io/giving-" in damaged.err
    await eventually(warm.given, "alice keeps hers")


async def test_what_a_class_has_left_is_a_folder_for_each_learner(
    world: World, desk: Desk, instructor: Instructor, tmp_path: Path
) -> None:
    """A switch has no configuration and no word, and a learner's name leads nowhere else."""
    await with_page(world)
    simulator = await world.simulator()
    worker = await world.worker(simulator.url)
    definition = await world.define(topology({"r1": "iosv", "r2": "iosv", "sw": "unmanaged_switch"}))
    pods = f"/api/v1/namespaces/{world.namespace}/pods"
    for user in ("alice", "../bob"):
        lablet = await world.pod(definition, worker, annotations={USER: user}, labels={"class": "friday"})
        await lablet.ready()
    await (await world.pod(definition, worker, labels={"class": "friday"})).ready()
    await instructor.grant()
    await desk.succeeds("stop", "-l", "class=friday", "--wait", "--timeout", "80s")
    saved = await desk.lablet("configs", "-l", "class=friday", "--dir", str(tmp_path / "out"))
    assert (saved.code, saved.err) == (0, "2 learners: ../bob, alice\n")
    files = [f"{learner}/{device}.cfg" for learner in ("alice", "bob") for device in ("r1", "r2")]
    found = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert sorted(str(path.relative_to(tmp_path / "out")) for path in found) == files
    assert sorted(saved.out.splitlines()) == sorted(str(tmp_path / "out" / file) for file in files)
    assert all("hostname" in path.read_text() for path in found)
    await desk.succeeds("configs", "-l", "class=friday", "--zip", str(tmp_path / "friday.zip"))
    with zipfile.ZipFile(tmp_path / "friday.zip") as packed:
        assert sorted(packed.namelist()) == files
    alice = next(pod for pod in await world.admin.items(pods) if pod["metadata"]["annotations"].get(USER) == "alice")
    await world.admin.delete(f"{pods}/{alice['metadata']['name']}")
    await world.admin.until_gone(f"{pods}/{alice['metadata']['name']}")
    rest = await desk.lablet("configs", "-l", "class=friday", "--dir", str(tmp_path / "rest"))
    assert rest.err == "2 learners: ../bob, alice\n", "by the labels that the Pod had"
    everyone = await desk.lablet("configs", "--all", "--dir", str(tmp_path / "all"))
    assert everyone.err == "2 learners: ../bob, alice\n"
    nobody = await desk.lablet("configs", "-l", "class=monday", "--dir", "x")
    assert (nobody.code, "nothing is kept of learners" in nobody.err) == (1, True)


async def test_a_class_that_is_collected_ends_with_its_grades(world: World, desk: Desk, instructor: Instructor) -> None:
    """One lablet ends with its verdict, one goes back to its pool, and one is free and left alone."""
    lds = await world.stack.enter_async_context(LdsSimulator(LdsSettings(token=TOKEN)))
    grader = f"{lds.url}/grade"
    env = {"LDS_API_URL": lds.url, "LDS_API_TOKEN": TOKEN, "VKPROVIDER_GRADER_TOKEN": TOKEN}
    await with_page(world, VKPROVIDER_GRADER_URL=grader, **env)
    worker = await world.worker((await world.simulator()).url)
    definition = await world.define(topology({"r1": "iosv"}, {"r1": ["serial:4001"]}))
    alone = await world.pod(definition, worker, annotations={USER: "bob"}, labels={"class": "friday"})
    notes = {USER: "alice", "vkprovider.io/lent-by": "warm"}
    lent = await world.pod(definition, worker, annotations=notes, labels={"class": "friday"})
    free = await world.pod(definition, worker, labels={"class": "friday", POOL: "warm"})
    for lablet in (alone, lent, free):
        await lablet.ready()
    await instructor.grant()
    collected = await desk.lablet("collect", "-l", "class=friday", "--yes", "--wait", "--timeout", "85s")
    assert "1 lablet that nobody has is left alone." in collected.err
    *_, head, alice, bob = collected.out.splitlines()
    assert head.split() == ["LEARNER", "PASSED", "SCORE", "NAME"]
    assert [row.split()[0] for row in (alice, bob)] == ["alice", "bob"]
    for row, lablet in ((alice, lent), (bob, alone)):
        _, passed, score, name = row.split()
        assert passed in {"yes", "no"}
        assert float(score) >= 0
        assert name == lablet.name
    past = (await desk.lablet("list", "--past", "-l", "class=friday", "-o", "json")).json["items"]
    assert [(row["learner"], row["name"], row["passed"], row["score"]) for row in past] == [
        (row.split()[0], row.split()[3], row.split()[1], row.split()[2]) for row in (alice, bob)
    ]
    table = await desk.succeeds("list", "--past", "-u", "alice")
    assert [line.split()[0] for line in table.splitlines()] == ["LEARNER", "alice"]
    book = await desk.succeeds("list", "--past", "-l", "class=friday", "--for", "canvas", "--column", "Lab 1")
    headings, possible, *rows = csv.reader(io.StringIO(book))
    assert (headings[3], headings[5:]) == ("SIS Login ID", ["Lab 1"])
    assert (possible[0], possible[5]) == ("Points Possible", "100")
    assert [(cells[3], float(cells[5]) >= 0) for cells in rows] == [("alice", True), ("bob", True)]
    assert "alice" not in await desk.succeeds("list"), "the lablet is nobody's"
    wrong = await desk.lablet("list", "--past", "-A")
    assert (wrong.code, "--past lists what learners of one namespace left" in wrong.err) == (2, True)
    again = await desk.lablet("collect", "-l", "class=monday", "--wait")
    assert (again.code, again.out) == (0, "")


@pytest.mark.parametrize(("words", "question"), [(["collect"], "End the time of alice"), (["reset"], "Wipe the lab")])
async def test_who_answers_late_ends_nothing_of_the_next_learner(
    world: World, desk: Desk, words: list[str], question: str
) -> None:
    """The question names alice; until it is answered, her lablet goes back to its pool, and to bob."""
    await world.replica()
    notes = {USER: "alice", "vkprovider.io/lent-by": "warm"}
    lablet = await world.pod(await world.define(), await world.worker(), annotations=notes)
    await lablet.ready()
    command = ["kubectl", "lablet", *words, "-u", "alice"]
    with Pty(command, {**desk.environ, "TERM": "xterm"}, columns=200) as pty:
        await asyncio.to_thread(pty.shows, question)
        await desk.succeeds("release", lablet.name)
        await lablet.ready()
        await desk.succeeds("assign", lablet.name, "bob")
        pty.type("y\n")
        code = await asyncio.to_thread(pty.ends, PATIENCE_S)
    assert code == 1
    assert f"pod/{lablet.name} is that of bob now; nothing was done" in pty.shown
    now = (await lablet.ready())["metadata"]["annotations"]
    assert (now[USER], "desired-state" in str(now), "vkprovider.io/reset" in now) == ("bob", False, False)


async def test_a_definition_of_a_file_is_made_changed_and_tried(world: World, desk: Desk, tmp_path: Path) -> None:
    """The test binds the trial to its Node, because no scheduler runs here.

    The namespace enforces the level `restricted`, which Pods of a pool satisfy.
    """
    enforced = {"pod-security.kubernetes.io/enforce": "restricted"}
    await world.admin.patch(f"/api/v1/namespaces/{world.namespace}", {"metadata": {"labels": enforced}})
    await world.replica()
    worker, name = await world.worker(), world.name("branch")
    file, pods = tmp_path / "cml.yaml", f"/api/v1/namespaces/{world.namespace}/pods"
    file.write_text(topology({"r1": "alpine"}, {"r1": ["serial:4001"]}))
    words = ("define", str(file), "--name", name)
    assert f"{name}: 1 device, makes 1.0.0 (dry run)" in await desk.succeeds(*words, "--dry-run")
    assert f"{name}: 1 device, version 1.0.0 made; a lablet needs " in await desk.succeeds(*words)
    assert "version 1.0.0 is as it was" in await desk.succeeds(*words)
    file.write_text(topology({"r1": "alpine", "r2": "alpine"}))
    same = await desk.lablet(*words)
    assert (same.code, "name a new version: --version 1.0.1" in same.err) == (1, True)

    async def bind() -> None:
        found = await eventually(lambda: world.admin.items(pods), "a trial")
        trial = found[0]["metadata"]["name"]
        target = {"apiVersion": "v1", "kind": "Node", "name": f"vnode.{worker}"}
        await world.admin.create(f"{pods}/{trial}/binding", {"metadata": {"name": trial}, "target": target})

    _, tried = await asyncio.gather(bind(), desk.succeeds(*words, "--version", "1.0.1", "--try", "--timeout", "80s"))
    assert f"a trial of {name}:1.0.1 booted in " in tried
    assert await world.admin.items(pods) == []
    file.write_text("lab: [")
    wrong = await desk.lablet(*words, "--version", "2")
    assert (wrong.code, wrong.out) == (1, "")
    assert f"{file}: " in wrong.err
    assert (await world.definition(name))["spec"]["version"] == "1.0.1"
