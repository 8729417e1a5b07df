"""The mistakes of new users, one row each: what is said, on which object, in which words.

The rows come from a trial by people who had never seen the project. The mistakes of a group are made at once, on a real
API server with the policies of an installation; then each row is looked for. No row says nothing. Rows of the doctor
have the status that Kubernetes' own controllers would write.
"""

import asyncio
import datetime as dt
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple

import pytest
import yaml

from tests.component.controllers.harness import World
from tests.component.controllers.looking import condition, is_ready
from tests.support.apiserver import GROUP, SECRETS, Admin, ApiServer, Refused, until
from tests.support.doctor import examined
from tests.support.extra import ACCOUNT, cmlworker, secret
from tests.support.topologies import definition, deployment, pod, pod_template, topology
from vkpsim.cml.server import CmlSimulator
from vkpsim.cml.simulation import Settings as CmlSettings
from vkpsim.http.faults import Fault
from vkpsim.http.tls import self_signed, server_context

LINK: Final = {"id": "l0", "n1": "n0", "i1": "i0", "n2": "n99", "i2": "i1"}
LINKED: Final = yaml.safe_dump(yaml.safe_load(topology({"h0": "alpine", "h1": "alpine"})) | {"links": [LINK]})
VIRL: Final = '<topology xmlns="http://www.cisco.com/VIRL"><node name="r1"/></topology>'
ELSEWHERE: Final = "https://192.0.2.1"
HOLDS_S: Final = 120.0
"""Seconds for what takes a replica a second, on a machine that does much else."""


class Said(NamedTuple):
    """What is said about a mistake.

    Attributes:
        where: `waiting` (of the container), `Ready` or `Impeded` (conditions), or `Event` (a Warning).
        reason: The word.
        text: Part of the message.
    """

    where: str
    reason: str
    text: str = ""


async def shown(admin: Admin, item: dict[str, Any], where: str) -> list[tuple[str, str]]:
    """Return reasons and messages of an object."""
    if where == "Event":
        meta = item["metadata"]
        found = await admin.items(f"/api/v1/events?fieldSelector=type=Warning,involvedObject.uid={meta['uid']}")
        return [(event["reason"], event["message"]) for event in found]
    if where == "waiting":
        states = [status["state"].get("waiting", {}) for status in item.get("status", {}).get("containerStatuses", [])]
        return [(state.get("reason", ""), state.get("message", "")) for state in states]
    said = condition(item, where)
    return [(said["reason"], said["message"])] if said["status"] == ("True" if where == "Impeded" else "False") else []


async def assert_said(admin: Admin, path: str, *wanted: Said) -> None:
    """Wait until an object says all of it."""
    for said in wanted:
        last: list[tuple[str, str]] = []

        async def look(said: Said = said) -> bool:
            nonlocal last
            item = await admin.get(path)
            last = await shown(admin, item, said.where) if item is not None else []
            return any(reason == said.reason and said.text in message for reason, message in last)

        try:
            await until(look, HOLDS_S, 0.2)
        except TimeoutError:
            raise AssertionError(f"{path}: not said: {said}; but: {last}") from None


async def every_row(rows: Mapping[str, Callable[[], Awaitable[None]]]) -> None:
    """Look for all rows, and name those that fail."""
    results = await asyncio.gather(*(row() for row in rows.values()), return_exceptions=True)
    failed = {name: result for name, result in zip(rows, results, strict=True) if isinstance(result, BaseException)}
    assert not failed, "\\n".join(f"{name}: {error}" for name, error in failed.items())


# ------------------------------------------------------------------------------------------------ Pods

LAB: Final = {"name": "lab", "image": "good:1.0.0"}


class PodRow(NamedTuple):
    """A Pod of the definition `good` that is wrong.

    Attributes:
        said: What is said on it.
        change: Fields of its spec.
        notes: Annotations of our group.
        later: A patch once it is Ready.
        refused: Part of the answer to that patch.
        part: The subresource that is patched.
    """

    said: tuple[Said, ...] = ()
    change: Mapping[str, Any] = {}
    notes: Mapping[str, str] = {}
    later: dict[str, Any] | None = None
    refused: str = ""
    part: str = ""


def annotated(**notes: str | None) -> dict[str, Any]:
    return {"metadata": {"annotations": {f"vkprovider.io/{name}": value for name, value in notes.items()}}}


def images(*images: str) -> dict[str, Any]:
    return {"containers": [{"name": f"r{n}" if n else "lab", "image": image} for n, image in enumerate(images)]}


PODS: Final = {
    "wrong tag, v-prefix": PodRow(
        (Said("waiting", "UnknownVersion", "no version 'v1.0.0'; it keeps 1.0.0"), Said("Event", "UnknownVersion")),
        images("good:v1.0.0"),
    ),
    "tag that YAML reads as a number": PodRow(
        (Said("waiting", "UnknownVersion", "it keeps 1.0.0"),), images("good:9.9")
    ),
    "container that is not a device": PodRow(
        (Said("waiting", "UnknownDevice", "call it 'lab' for the whole lab, or one of h0"),), images("good", "good")
    ),
    "image of something else": PodRow(
        (Said("waiting", "DefinitionMismatch", "the images must be good[:VERSION]"),), images("nginx")
    ),
    "init container": PodRow(
        (Said("waiting", "NotALablet", "no init containers; remove them"),),
        {"initContainers": [{"name": "i", "image": "busybox"}]},
    ),
    "timeslot-end: tomorrow": PodRow(
        (Said("Event", "AnnotationInvalid", "'tomorrow' is not a time with a zone; example: 2026-"),),
        notes={"timeslot-end": "tomorrow"},
    ),
    "desired-state: PAUSED": PodRow(
        (Said("Event", "AnnotationInvalid", "'PAUSED' is not one of READY, RUNNING, STOPPED"),),
        notes={"desired-state": "PAUSED"},
    ),
    "unknown vkprovider.io annotation": PodRow(
        (Said("Event", "AnnotationInvalid", "do you mean vkprovider.io/username?"),), notes={"user": "zoe"}
    ),
    "username changed": PodRow(
        notes={"username": "ann"},
        later=annotated(username="eve"),
        refused="For another learner, first end the session with: kubectl lablet release",
    ),
    "username removed": PodRow(
        notes={"username": "ann"},
        later=annotated(username=None),
        refused="For another learner, first end the session with: kubectl lablet release",
    ),
    "activity forged": PodRow(
        later=annotated(**{"last-activity": "2026-01-01T00:00:00Z"}),
        refused="Only the provider writes vkprovider.io/last-activity",
    ),
    "state edited": PodRow(later=annotated(state="FAILED"), refused="Only the provider writes vkprovider.io/state"),
    "lab-id edited": PodRow(
        later=annotated(**{"lab-id": "mine"}), refused="Only the provider writes vkprovider.io/lab-id"
    ),
    "port-mappings edited": PodRow(
        later=annotated(**{"port-mappings": "{}"}), refused="Only the provider writes vkprovider.io/port-mappings"
    ),
    "image of a running Pod changed": PodRow(
        (Said("Event", "ImageChangeIgnored", "create a new pod, or change the pod's template"),),
        later={"spec": {"containers": [{"name": "lab", "image": "good:2.0.0"}]}},
    ),
    "command, probe and volume": PodRow(
        (Said("Event", "FieldIgnored", "volumes"), Said("Event", "FieldIgnored", "livenessProbe")),
        {
            "containers": [{**LAB, "command": ["a"], "livenessProbe": {"exec": {"command": ["false"]}}}],
            "volumes": [{"name": "v", "emptyDir": {}}],
        },
    ),
    "kubectl debug": PodRow(
        later={"spec": {"ephemeralContainers": [{"name": "debugger", "image": "busybox"}]}},
        refused="no container can run beside it. For the console of a device use: kubectl lablet console p",
        part="/ephemeralcontainers",
    ),
    "label in another script, title of 200 characters": PodRow(
        change={"runtimeClassName": "unicode", **images("unicode")}
    ),
}
"""A row without words works."""


@pytest.fixture
async def team(world: World) -> tuple[World, str]:
    """A world with a worker, the definition `good`, and one of names that nobody expects."""
    await world.replica()
    worker = await world.worker()
    await world.define(name="good")
    await world.define(topology({"Zürich-東京": "alpine"}, title="x" * 200), name="unicode")
    return world, worker


async def test_pods(team: tuple[World, str]) -> None:
    world, worker = team
    pods = f"/api/v1/namespaces/{world.namespace}/pods"

    def look(number: int, row: PodRow) -> Callable[[], Awaitable[None]]:
        async def work() -> None:
            body = pod(f"p{number}", "good")
            body["spec"] |= {"nodeName": f"vnode.{worker}", **row.change}
            body["metadata"]["annotations"] = {f"vkprovider.io/{name}": note for name, note in row.notes.items()}
            await world.admin.create(pods, body)
            path = f"{pods}/p{number}"
            if row.later is not None or not row.said:
                await world.admin.until(path, is_ready)
            if row.later is not None:
                await later(path + row.part, row, row.later)
            await assert_said(world.admin, path, *row.said)

        return work

    async def later(path: str, row: PodRow, patch: dict[str, Any]) -> None:
        kind = "application/strategic-merge-patch+json"
        if not row.refused:
            await world.admin.request("PATCH", path, patch, kind)
            return
        with pytest.raises(Refused) as caught:
            await world.admin.request("PATCH", path, patch, kind)
        assert row.refused in " ".join(str(caught.value).split())

    await every_row({name: look(number, row) for number, (name, row) in enumerate(PODS.items())})


# ------------------------------------------------------------------------------------------------ definitions

TWICE: Final = topology({"h0": "alpine", "h1": "alpine"}).replace("label: h1", "label: h0")
SIXTY: Final = topology({"h0": "alpine"}, {"h0": [f"serial:{port}" for port in range(60)]})


class DefinitionRow(NamedTuple):
    """A definition that is wrong.

    Attributes:
        said: What is said on it.
        inline: Its topology; one host if unset.
        change: Fields of its spec.
        later: A change once it is Ready.
        deleted: Whether it is deleted while a lablet runs it.
    """

    said: Said
    inline: str | None = None
    change: Mapping[str, Any] = {}
    later: Mapping[str, Any] | None = None
    deleted: bool = False


DEFINITIONS: Final = {
    "YAML with a tab": DefinitionRow(
        Said("Ready", "TopologyInvalid", "invalid YAML at line 2, column 1"), "lab:\n\tversion: 0.3.0\n"
    ),
    "a .virl file": DefinitionRow(
        Said("Ready", "TopologyInvalid", "a file of VIRL 1.x (XML): import it into CML once"), VIRL
    ),
    "unknown node definition": DefinitionRow(
        Said("Ready", "ResourcesUnknown", "give them there, set spec.resources, or extend"), topology({"r1": "asr9k"})
    ),
    "two devices of one label": DefinitionRow(Said("Ready", "TopologyInvalid", "'h0' is nodes[0]'s already"), TWICE),
    "link to nothing": DefinitionRow(Said("Ready", "TopologyInvalid", "links[0].n2 'n99' is not the id of"), LINKED),
    "misspelt tag": DefinitionRow(
        Said("Impeded", "TagUnclear", "'pat:5043' of 'h0' requests no port: write pat:PORT:INSIDE"),
        topology({"h0": "alpine"}, {"h0": ["pat:5043"]}),
    ),
    "too many ports": DefinitionRow(
        Said("Ready", "TooManyPorts", "needs 60 external ports; the limit is 50 per lablet"), SIXTY
    ),
    "larger than any worker": DefinitionRow(
        Said("Impeded", "TooLarge", "cpu 2000 > 64"), change={"resources": {"cpu": "2000"}}
    ),
    "deviceSecretName that names nothing": DefinitionRow(
        Said("Impeded", "DeviceSecretInvalid", "nowhere does not exist; create it"),
        change={"deviceSecretName": "nowhere"},
    ),
    "ConfigMap that the provider may not read": DefinitionRow(
        Said("Ready", "SourceForbidden", "create rolebinding vkprovider-topologies"),
        change={"source": {"configMap": {"namespace": "default", "name": "nowhere"}}},
    ),
    "object store that is not configured": DefinitionRow(
        Said("Ready", "ContentStoreUnavailable", "a.zip at http://localhost:9000 cannot be read"),
        change={"source": {"objectStore": {"key": "a.zip"}}},
    ),
    "content replaced under one version": DefinitionRow(
        Said("Event", "ContentReplaced", "raise spec.version with each change"),
        later={"source": {"inline": topology({"other": "alpine"})}},
    ),
    "deleted in use": DefinitionRow(Said("Ready", "InUse", "1 lablet; delete their pods, or annotate"), deleted=True),
}


async def test_definitions(team: tuple[World, str]) -> None:
    world, worker = team

    def look(number: int, row: DefinitionRow) -> Callable[[], Awaitable[None]]:
        async def work() -> None:
            ready = row.later is not None or row.deleted
            name = await world.define(row.inline, name=f"d{number}", ready=ready, **row.change)
            if row.later is not None:
                await world.change_definition(name, **row.later)
            if row.deleted:
                await (await world.pod(name, worker)).ready()
                await world.admin.delete(f"{GROUP}/labletdefinitions/{name}")
            await assert_said(world.admin, f"{GROUP}/labletdefinitions/{name}", row.said)

        return work

    await every_row({name: look(number, row) for number, (name, row) in enumerate(DEFINITIONS.items())})


# ------------------------------------------------------------------------------------------------ workers


TRUSTED: Final = "https://{cml}"


class WorkerRow(NamedTuple):
    """A CMLWorker that is wrong.

    Attributes:
        reason, text: Of its condition Ready, and of an Event; part of the message.
        url: Its url; `{cml}` stands for host and port of a CML with a certificate that nobody trusts.
        change: Fields of its spec.
        secret: What its Secret holds; None: there is none.
    """

    reason: str
    text: str
    url: str = ELSEWHERE
    change: Mapping[str, Any] = {}
    secret: Mapping[str, str] | None = ACCOUNT


WORKERS: Final = {
    "Secret missing": WorkerRow("CredentialsInvalid", "does not exist; create it with keys", TRUSTED, secret=None),
    "keys of the Secret wrong": WorkerRow("CredentialsInvalid", "username", TRUSTED, secret={"user": "a", "pass": "b"}),
    "password wrong": WorkerRow("CredentialsInvalid", "", TRUSTED, secret={**ACCOUNT, "password": "wrong-Pa55"}),
    "no scheme": WorkerRow("WorkerUrlInvalid", "https://", "192.0.2.1"),
    "path in url": WorkerRow("WorkerUrlInvalid", "", f"{ELSEWHERE}/ui"),
    "bad CA": WorkerRow("CaBundleInvalid", "PEM", change={"tls": {"caBundle": "no pem"}}),
    "bad quantity": WorkerRow("SpecInvalid", "capacity.cpu", change={"capacity": {"cpu": "many"}}),
    "http for https": WorkerRow("WorkerUnreachable", "write https:// in spec.url", "http://{cml}"),
    "unknown host": WorkerRow("WorkerUnreachable", "cml.invalid", "https://cml.invalid"),
    "closed port": WorkerRow("WorkerUnreachable", "127.0.0.1:1", "https://127.0.0.1:1"),
    "port forgotten": WorkerRow(
        "WorkerUnreachable", "if CML listens on another port, write it: https://127.0.0.1:PORT", "https://127.0.0.1"
    ),
    "port that the NetworkPolicy does not let out": WorkerRow(
        "WorkerUnreachable", "to port 1 (manifests/deployment/networkpolicy.yaml)", "https://127.0.0.1:1"
    ),
    "self-signed certificate": WorkerRow("CertificateInvalid", "", TRUSTED, {"tls": {}}),
}


async def test_workers(world: World) -> None:
    await world.replica()
    certificate, key = self_signed("127.0.0.1", dt.datetime.now(dt.UTC))
    settings = CmlSettings(password=ACCOUNT["password"], username=ACCOUNT["username"])
    cml = await world.stack.enter_async_context(CmlSimulator(settings, tls=server_context(certificate, key)))

    def look(number: int, row: WorkerRow) -> Callable[[], Awaitable[None]]:
        async def work() -> None:
            name, url = f"bad-{number}", row.url.format(cml=cml.url.removeprefix("https://"))
            if row.secret is not None:
                await world.admin.create(SECRETS, secret(name, row.secret, url))
            await world.admin.create(f"{GROUP}/cmlworkers", cmlworker(name, url, **row.change))
            said = [Said(where, row.reason, row.text) for where in ("Ready", "Event")]
            await assert_said(world.admin, f"{GROUP}/cmlworkers/{name}", *said)

        return work

    await every_row({name: look(number, row) for number, (name, row) in enumerate(WORKERS.items())})


async def test_a_worker_that_falls_silent_says_so_itself_and_on_its_lablets(world: World) -> None:
    await world.replica()
    simulator = await world.simulator()
    worker, name = await world.worker(simulator.url), await world.define()
    lablet = await world.pod(name, worker)
    await lablet.ready()
    simulator.faults.add(Fault(kind="drop"), simulator.now())
    for path in (f"{GROUP}/cmlworkers/{worker}", lablet.path):
        await assert_said(world.admin, path, Said("Ready", "WorkerUnreachable", ""))


# ------------------------------------------------------------------------------------------------ refused at once


def changed(base: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Return an object with other fields of its spec; None removes one."""
    spec = {key: value for key, value in {**base["spec"], **fields}.items() if value is not None}
    return {**base, "spec": spec}


BARE: Final = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [LAB]}}
WORKER: Final = cmlworker("w", ELSEWHERE)

REFUSED: Final = {
    "misspelt runtimeClassName": (changed(pod("p", "good"), runtimeClassName="god"), 'RuntimeClass "god" not found'),
    "nodeName by hand": (
        changed(BARE, nodeName="vnode.w"),
        "Set spec.runtimeClassName to a LabletDefinition (kubectl get labletdefinitions)",
    ),
    "topology that is too large for etcd": (definition("d", "#" * 1_010_000), "spec.source.inline: Too long"),
    "two sources": (
        definition("d", source={"inline": "a", "objectStore": {"key": "b"}}),
        "set exactly one of source.inline, source.configMap and source.objectStore",
    ),
    "no version": (changed(definition("d"), version=None), "spec.version: Required value"),
    "unknown field": (definition("d", sauce={}), 'unknown field "spec.sauce"'),
    "version as a number": (changed(definition("d"), version=1.0), "must be of type string"),
    "version latest": (definition("d", version="latest"), "a version cannot be called latest"),
    "port range upside down": (changed(WORKER, portRange={"start": 9, "end": 1}), "end is below start"),
    "no url": (changed(WORKER, url=None), "url is missing"),
}
"""What kubectl sends, with its strict validation, and part of the answer."""


@pytest.mark.parametrize("name", REFUSED)
async def test_refused(world: World, name: str) -> None:
    body, text = REFUSED[name]
    pods = f"/api/v1/namespaces/{world.namespace}/pods"
    place = pods if body["kind"] == "Pod" else f"{GROUP}/{body['kind'].lower()}s"
    with pytest.raises(Refused) as caught:
        await world.admin.create(f"{place}?fieldValidation=Strict&dryRun=All", body)
    assert text in " ".join(str(caught.value).split())


async def test_a_worker_keeps_its_environment(admin: Admin) -> None:
    await admin.create(f"{GROUP}/cmlworkers", cmlworker("moved", ELSEWHERE))
    try:
        with pytest.raises(Refused, match="environment cannot be changed: a changed taint would evict every lablet"):
            await admin.patch(f"{GROUP}/cmlworkers/moved", {"spec": {"environment": "other"}})
    finally:
        await admin.delete(f"{GROUP}/cmlworkers/moved")


# ------------------------------------------------------------------------------------------------ said by the doctor

UNSCHEDULABLE: Final = {
    "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}]
}
QUOTA: Final = 'pods "x" is forbidden: exceeded quota: team'
FAILURE: Final = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": QUOTA}
SELECTS: Final = {"selector": {"matchLabels": {"app": "good"}}, "template": pod_template("good")}


class DoctorRow(NamedTuple):
    """What only the doctor can say.

    Attributes:
        body: The object.
        status: What Kubernetes' controllers report of it.
        about, reason, text: Of the line, `{ns}` for the namespace.
    """

    body: dict[str, Any]
    status: dict[str, Any]
    about: str
    reason: str
    text: str


DOCTOR: Final = {
    "no runtimeClassName": DoctorRow(
        {**BARE, "metadata": {"name": "bare"}}, UNSCHEDULABLE, "Pod/{ns}/bare", "NotALablet", "no runtimeClassName"
    ),
    "100 CPU": DoctorRow(
        changed(pod("huge", "good"), containers=[{**LAB, "resources": {"requests": {"cpu": "100"}}}]),
        UNSCHEDULABLE,
        "Pod/{ns}/huge",
        "TooLarge",
        "cpu 101 > 64",
    ),
    "Deployment beyond a quota": DoctorRow(
        {**(d := deployment("full", "good", 5)), "kind": "ReplicaSet", "spec": {**d["spec"]}},
        {"replicas": 3, "conditions": [FAILURE]},
        "ReplicaSet/{ns}/full",
        "FailedCreate",
        QUOTA,
    ),
    "DaemonSet without tolerations": DoctorRow(
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "every"}, "spec": SELECTS},
        {"desiredNumberScheduled": 0, "currentNumberScheduled": 0, "numberMisscheduled": 0, "numberReady": 0},
        "DaemonSet/{ns}/every",
        "DaemonSetEmpty",
        "it selects no Node",
    ),
}


async def lines_of_the_doctor(apiserver: ApiServer) -> list[tuple[str, str, str]]:
    """Return object, reason and message of every line of the doctor."""
    report = await examined(apiserver.kubeconfig)
    return [(finding.object, finding.reason, finding.line) for finding in report.findings]


async def test_doctor(team: tuple[World, str], apiserver: ApiServer) -> None:
    world, worker = team
    namespace = world.namespace
    for row in DOCTOR.values():
        root = "/api/v1" if row.body["kind"] == "Pod" else "/apis/apps/v1"
        path = f"{root}/namespaces/{namespace}/{row.body['kind'].lower()}s"
        await world.admin.create(path, row.body)
        await world.admin.patch(f"{path}/{row.body['metadata']['name']}/status", {"status": row.status})
    lablet = await world.pod("good", worker, annotations={"vkprovider.io/timeslot-end": "tomorrow"})
    await lablet.ready()
    found = await lines_of_the_doctor(apiserver)
    missing = {
        name: row
        for name, row in DOCTOR.items()
        if not any(
            (about, reason) == (row.about.format(ns=namespace), row.reason) and row.text in line
            for about, reason, line in found
        )
    }
    for path in ("replicasets", "daemonsets"):
        await world.admin.delete(f"/apis/apps/v1/namespaces/{namespace}/{path}")
    assert not missing, json.dumps(found, indent=1)
    assert any((a, r) == (f"Pod/{namespace}/{lablet.name}", "AnnotationInvalid") for a, r, _ in found), found


async def test_doctor_names_one_controller_that_is_connected_twice_and_a_provider_that_is_stopped(
    world: World, apiserver: ApiServer
) -> None:
    running = await world.replica()
    names = [await world.worker("https://192.0.2.7", ready=False) for _ in range(2)]
    about = f"CMLWorker/{min(names)}"
    assert (about, "SameUrl") in {(about, reason) for about, reason, _ in await lines_of_the_doctor(apiserver)}
    await running.stop()
    assert "NoReplica" in {reason for _, reason, _ in await lines_of_the_doctor(apiserver)}
