"""`kubectl lablet list` and `ports`: every format, the options of kubectl, and a watch that lasts."""

import asyncio
import csv
import io
import json
import signal
from datetime import datetime
from typing import Any

import pytest
import yaml

from tests.component.cli.desk import Desk
from tests.component.controllers.harness import World
from tests.component.controllers.looking import eventually
from tests.component.controllers.podhandle import Lablet
from tests.support.topologies import topology

HEADINGS = ["LEARNER", "STATE", "SINCE", "LEFT", "DEVICES", "REASON", "NAME"]
WIDE = [*HEADINGS, "DEFINITION", "VERSION", "WORKER", "LAB", "AGE", "UNTIL", "ADDRESS", "CONTENT", "LINK"]
END = "2999-01-31T12:00:00Z"


async def awaited(value: object) -> object:
    return value


@pytest.fixture
async def lablets(world: World) -> list[Lablet]:
    """One that is Ready and a learner's, and one that is refused."""
    await world.replica()
    simulator = await world.simulator()
    worker = await world.worker(simulator.url, tls={"insecureSkipVerify": True})
    tags = {"R 1": ["serial:4001", "pat:4003:22", "pat:udp:4004:53"]}
    definition = await world.define(topology({"R 1": "alpine"}, tags))
    notes = {"vkprovider.io/username": "alice", "vkprovider.io/timeslot-end": END}
    mine = await world.pod(definition, worker, annotations=notes, labels={"class": "monday"})
    refused = await world.pod(definition, worker, version="9", labels={"class": "friday"})
    await mine.ready()
    await refused.waits("UnknownVersion")
    return [mine, refused]


async def test_every_format_of_the_list(world: World, desk: Desk, lablets: list[Lablet]) -> None:
    mine, refused = lablets
    await mine.until(lambda pod: pod["metadata"]["annotations"].get("vkprovider.io/devices") == "1/1")
    before = datetime.now().astimezone()
    table = await desk.lablet("list")
    days = {before.date(), datetime.now().astimezone().date()}
    assert (table.code, table.err) == (0, "2 lablets: 1 needs help, 1 ready\n")
    assert table.rows[0] == HEADINGS
    first, second = [dict(zip(HEADINGS, row, strict=True)) for row in table.rows[1:]]
    since = [first.pop("SINCE"), second.pop("SINCE")]
    assert first.pop("LEFT").endswith("y")
    assert first == {"LEARNER": "alice", "STATE": "ready", "DEVICES": "1/1", "REASON": "<none>", "NAME": mine.name}
    assert second == {
        "LEARNER": "<none>",
        "STATE": "needs help",
        "LEFT": "<none>",
        "DEVICES": "<none>",
        "REASON": "UnknownVersion",
        "NAME": refused.name,
    }
    wide = await desk.lablet("list", "-o", "wide")
    assert wide.rows[0] == WIDE
    pod = await mine.ready()
    link = pod["metadata"]["annotations"]["vkprovider.io/lab-url"]
    assert link.endswith(f"/lab/{pod['metadata']['annotations']['vkprovider.io/lab-id']}")
    row = dict(zip(WIDE, wide.rows[1], strict=True))
    assert (row["ADDRESS"], row["REASON"], row["LINK"]) == ("198.51.100.7", "<none>", link)
    assert row["UNTIL"] == datetime.fromisoformat(END).astimezone().strftime("%Y-%m-%d %H:%M")

    listed = (await desk.lablet("list", "-o", "json")).json
    assert (listed["apiVersion"], listed["kind"]) == ("cli.vkprovider.io/v1", "LabletList")
    first, second = listed["items"]
    for shown, lablet in zip(since, (first, second), strict=True):
        when = datetime.fromisoformat(lablet["since"]).astimezone()
        assert shown in {f"{when:%H:%M}" if when.date() == day else f"{when:%Y-%m-%d %H:%M}" for day in days}
    assert {key: first[key] for key in ("kind", "namespace", "name", "uid", "ready", "user", "until", "link")} == {
        "kind": "Lablet",
        "namespace": world.namespace,
        "name": mine.name,
        "uid": mine.uid,
        "ready": True,
        "user": "alice",
        "until": END,
        "link": link,
    }
    assert (second["reason"], second["link"], second["lab"]) == ("UnknownVersion", "", "")
    assert yaml.safe_load((await desk.lablet("list", "-o", "yaml")).out) == listed
    assert await desk.succeeds("list", "-o", "name") == f"pod/{mine.name}\npod/{refused.name}\n"
    written = await desk.succeeds("list", "-o", "csv")
    assert written.startswith("\ufeff"), "Excel takes it for Windows-1252 otherwise"
    rows = list(csv.DictReader(io.StringIO(written.removeprefix("\ufeff"))))
    assert [(row["user"], row["standing"], row["devices"]) for row in rows] == [
        ("alice", "ready", "1/1"),
        ("", "needs help", ""),
    ]
    assert list(rows[0]) == [key for key in first_item(listed) if key != "kind"]


def first_item(listed: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = listed["items"][0]
    return found


async def test_rows_are_chosen_and_sorted(desk: Desk, lablets: list[Lablet]) -> None:
    mine, refused = lablets

    async def found(*words: str) -> list[str]:
        return (await desk.succeeds("list", "-o", "name", *words)).split()

    assert await found("--sort", "state") == [f"pod/{refused.name}", f"pod/{mine.name}"]
    assert await found("--state", "needs help", "--state=free") == [f"pod/{refused.name}"]
    assert await found("-u", "alice", "-u", "bob") == [f"pod/{mine.name}"]
    nobody = await desk.lablet("list", "--state=working")
    assert (nobody.code, nobody.out) == (0, "")
    assert nobody.err.startswith("No lablets found of those in ")
    watched = await desk.lablet("list", "--watch", "--state=free")
    assert (watched.code, "leave out --state" in watched.err) == (2, True)


async def test_selection_is_kubectls(world: World, desk: Desk, lablets: list[Lablet]) -> None:
    mine, refused = lablets
    assert await desk.succeeds("list", "-o", "name", "-l", "class=monday") == f"pod/{mine.name}\n"
    assert await desk.succeeds("list", "-o", "name", "-l", "class notin (monday)") == f"pod/{refused.name}\n"
    assert await desk.succeeds("list", "-oname", f"--field-selector=metadata.name={mine.name}") == f"pod/{mine.name}\n"
    everywhere = await desk.lablet("list", "-A", "-n", "nowhere")
    assert everywhere.rows[0] == ["NAMESPACE", *HEADINGS]
    assert [row[-1] for row in everywhere.rows if row[0] == world.namespace] == [mine.name, refused.name]
    nothing = await desk.lablet("list", "-n", "kube-public")
    assert nothing == (0, "", "No lablets found in kube-public namespace.\n")
    empty = (await desk.lablet("list", "-n", "kube-public", "-o", "json")).json
    assert empty["items"] == []
    wrong = await desk.lablet("list", "-l", "class in monday")
    assert (wrong.code, wrong.out) == (1, "")
    assert "unable to parse" in wrong.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("list", "--kubeconfig=/nowhere"), "no kubeconfig at /nowhere; set KUBECONFIG or pass one"),
        (("list", "--context=nowhere"), "no context 'nowhere'; there are:"),
        (("list", "-o", "xml"), "'xml' is not one of 'table', 'wide', 'json', 'yaml', 'csv', 'name'"),
        (("stop",), "name a POD, or a learner with -u, or select several with -l"),
        (("stop", "a", "-l", "x=y"), "not both"),
        (("stop", "nowhere"), 'pods "nowhere" not found in namespace'),
    ],
)
async def test_wrong_calls_are_explained(desk: Desk, words: tuple[str, ...], says: str) -> None:
    result = await desk.lablet(*words)
    assert result.code != 0
    assert says in result.err


async def test_every_format_of_ports(desk: Desk, lablets: list[Lablet]) -> None:
    mine, refused = lablets
    listed = (await desk.lablet("ports", mine.name, "-o", "json")).json
    assert (listed["kind"], {item["kind"] for item in listed["items"]}) == ("LabletPortList", {"LabletPort"})
    by_name = {item["name"]: item for item in listed["items"]}
    assert (by_name["R_1_pat22"]["originalPort"], by_name["R_1_pat22"]["internalPort"]) == (4003, 22)
    assert yaml.safe_load(await desk.succeeds("ports", mine.name, "-o", "yaml")) == listed
    assert set((await desk.succeeds("ports", mine.name, "-o", "name")).split()) == set(by_name)
    nothing = await desk.lablet("ports", refused.name)
    assert (nothing.code, nothing.out) == (0, "")
    assert nothing.err.startswith(f"pod/{refused.name} has no ports")


async def test_a_watch_prints_changes_and_outlives_its_connection(
    world: World, desk: Desk, lablets: list[Lablet]
) -> None:
    mine, refused = lablets
    api, kubeconfig = await desk.proxied()
    process = await desk.start("lablet", "list", "--watch", f"--kubeconfig={kubeconfig}")
    assert process.stdout is not None

    async def row() -> list[str]:
        assert process.stdout is not None
        async with asyncio.timeout(90):
            line = (await process.stdout.readline()).decode()
        return line.split()

    assert await row() == HEADINGS
    assert (await row())[-1] == mine.name
    assert (await row())[-1] == refused.name
    await eventually(lambda: awaited(api.watching), "a watch")
    assert api.end_watches() == 1
    await mine.annotate(desired_state="STOPPED")
    while (now := await row())[1] != "stopped":
        assert now[-1] == mine.name
    await world.admin.patch(refused.path, {"metadata": {"annotations": {"example.com/other": "1"}}})
    await refused.delete()
    assert (await row())[-1] == refused.name, "what is not shown makes no row"
    process.send_signal(signal.SIGINT)
    async with asyncio.timeout(90):
        out, err = await process.communicate()
    assert err == b"", "no traceback, and no word"
    assert refused.name in out.decode() or out == b""

    kubectls = await desk.start("get", "pods", mine.name, "--watch")
    assert kubectls.stdout is not None
    async with asyncio.timeout(90):
        for _ in ("headings", "the list"):
            await kubectls.stdout.readline()
        await world.admin.patch(mine.path, {"metadata": {"annotations": {"example.com/other": "1"}}})
        await kubectls.stdout.readline()  # from its watch
        kubectls.send_signal(signal.SIGINT)
        await kubectls.communicate()
    assert process.returncode == kubectls.returncode


async def test_a_watch_as_documents(desk: Desk, lablets: list[Lablet]) -> None:
    process = await desk.start("lablet", "list", "-w", "-o", "json", "-l", "class=monday")
    assert process.stdout is not None
    text, decoder = "", json.JSONDecoder()
    async with asyncio.timeout(90):
        while not text.rstrip().endswith("}"):
            text += (await process.stdout.readline()).decode()
    document, _ = decoder.raw_decode(text)
    assert (document["apiVersion"], document["kind"], document["name"]) == (
        "cli.vkprovider.io/v1",
        "Lablet",
        lablets[0].name,
    )
