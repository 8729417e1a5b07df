"""`kubectl lablet capture` through a stock API server: a file that tcpdump reads, and who gets none."""

import asyncio

from tests.component.cli.desk import Desk
from tests.component.controllers.harness import World
from tests.component.controllers.podhandle import Lablet
from tests.component.controllers.test_console_captures import LAB, LINK, tcpdump

RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces"
PEOPLE = {
    "the learner of another lablet": "bob",
    "an instructor of another class": "teacher",
    "a stolen link of another lablet": "system:serviceaccount:{namespace}:vkprovider-link-bob",
    "a stranger": "mallory",
}


async def lablet_of(world: World) -> Lablet:
    simulator = await world.simulator()
    await world.replica()
    worker = await world.worker(simulator.url)
    lablet = await world.pod(await world.define(LAB), worker, devices=["r1", "r2", "r3"], typed=True)
    await lablet.ready()
    await lablet.claim(lambda row: row.get("readyAt"))
    return lablet


async def allowed(world: World, namespace: str, user: str, *, pod: str = "") -> None:
    """Let a user open consoles in a namespace, or of one Pod, as an assignment and the role of an instructor do."""
    rule = {"apiGroups": [""], "resources": ["pods", "pods/exec"], "verbs": ["get", "create"]}
    name = {"metadata": {"name": user.rpartition(":")[2]}}
    await world.admin.create(
        f"{RBAC}/{namespace}/roles", {**name, "rules": [rule | ({"resourceNames": [pod]} if pod else {})]}
    )
    group = "rbac.authorization.k8s.io"
    role = {"apiGroup": group, "kind": "Role", "name": name["metadata"]["name"]}
    subject = {"apiGroup": group, "kind": "User", "name": user}
    await world.admin.create(f"{RBAC}/{namespace}/rolebindings", {**name, "roleRef": role, "subjects": [subject]})


async def test_a_pipe_gets_the_packets_and_a_person_the_links(world: World, desk: Desk) -> None:
    lablet = await lablet_of(world)
    assert await desk.completes("capture", lablet.name, "r1") == (["r1-r2", "r1-r3"], 4)
    shown = await desk.lablet("capture", lablet.name)
    assert (shown.code, shown.out.splitlines()[0]) == (0, LINK), shown
    process = await desk.start("lablet", "capture", lablet.name, "r1:gi0/0", "--packets=4", "--filter=icmp")
    async with asyncio.timeout(120):
        out, err = await process.communicate()
    assert process.returncode == 0, err
    lines = tcpdump(out)
    assert len(lines) == 4
    assert all("ICMP echo" in line for line in lines)
    assert b"4 packets captured" in err
    refused = await desk.lablet("capture", lablet.name, "--stop")
    assert (refused.code, "no packets are captured" in refused.err) == (1, True), refused


async def test_the_learner_captures_and_nobody_else_does(world: World, desk: Desk) -> None:
    lablet, namespace = await lablet_of(world), world.namespace
    await allowed(world, namespace, "alice", pod=lablet.name)
    await allowed(world, namespace, "bob", pod="other-0")
    await allowed(
        world, namespace, PEOPLE["a stolen link of another lablet"].format(namespace=namespace), pod="other-0"
    )
    await allowed(world, "default", "teacher")
    words = ("exec", lablet.name, "-c", "lab", "--", "capture", "list")
    for who, user in PEOPLE.items():
        refused = await desk.kubectl(f"--as={user.format(namespace=namespace)}", *words)
        assert (refused.code, refused.out) == (1, ""), who
        assert "forbidden" in refused.err.lower(), who
    mine = await desk.kubectl("--as=alice", *words)
    assert (mine.code, LINK in mine.out) == (0, True), mine
