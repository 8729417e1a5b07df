"""Environment variables of a Pod become the day-0 configurations of its lab; what they refer to is waited for."""

import base64
import json
from typing import Any

import pytest
import yaml

from tests.component.controllers.harness import World
from tests.component.controllers.looking import eventually, imports, labs, waiting, when
from tests.component.controllers.podhandle import Lablet
from tests.component.controllers.running import MORTAL
from tests.support.apiserver import SYSTEM
from tests.support.cmlapi.simulator import CmlSimulator
from tests.support.topologies import topology
from vkpsim.http.faults import Fault

PASSWORD = "s3cr3t: {x}\n\"'"  # (breaks YAML wherever it stands bare)


@pytest.fixture
async def simulator(world: World) -> CmlSimulator:
    return await world.simulator()


def configured(**configurations: str) -> str:
    """Make a topology with these configurations, by label."""
    document = yaml.safe_load(topology(dict.fromkeys(configurations, "iosv")))
    for node in document["nodes"]:
        node["configuration"] = configurations[node["label"]]
    return yaml.safe_dump(document)


def with_env(definition: str, *env: dict[str, Any], **devices: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Make the containers of a Pod: `lab` with these variables, and those of devices."""
    return [
        {"name": "lab", "image": definition, "env": list(env)},
        *({"name": name, "image": definition, "env": own} for name, own in devices.items()),
    ]


def from_secret(name: str, key: str, **more: Any) -> dict[str, Any]:
    return {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": name, "key": key, **more}}}


NAME: dict[str, Any] = {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}


async def allow(world: World) -> None:
    """Let the provider read ConfigMaps and Secrets of the namespace, as its admin does."""
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "vkprovider-parameter-reader"}
    account = {"kind": "ServiceAccount", "namespace": SYSTEM, "name": "vkprovider"}
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{world.namespace}/rolebindings"
    body = {"metadata": {"name": "vkprovider-parameters"}, "roleRef": role, "subjects": [account]}
    await world.admin.create(path, body)


async def secret(world: World, name: str, **data: str) -> None:
    await world.admin.create(
        f"/api/v1/namespaces/{world.namespace}/secrets", {"metadata": {"name": name}, "stringData": data}
    )


async def config_map(world: World, name: str, **data: str) -> None:
    path = f"/api/v1/namespaces/{world.namespace}/configmaps"
    await world.admin.create(path, {"metadata": {"name": name}, "data": data})


def configurations(simulator: CmlSimulator, lablet: Lablet) -> dict[str, str]:
    """Return what the devices of a lablet's lab were imported with, by label."""
    [lab] = [lab for lab in simulator.simulation.world.labs.values() if lab.title.endswith(lablet.uid)]
    return {node.label: node.configuration[0].content for node in lab.nodes.values()}


async def warnings(lablet: Lablet) -> dict[str, str]:
    """Return the Warning Events about a Pod: messages by reason; none is there twice."""
    selector = f"type=Warning,involvedObject.name={lablet.name}"
    found = await lablet.admin.items(f"/api/v1/events?fieldSelector={selector}")
    assert len({event["reason"] for event in found}) == len(found)
    return {event["reason"]: event["message"] for event in found}


async def test_pods_of_one_template_have_labs_of_their_own(
    world: World, simulator: CmlSimulator, capfd: pytest.CaptureFixture[str]
) -> None:
    replica = await world.replica()
    await allow(world)
    await secret(world, "login", password=PASSWORD)
    await config_map(world, "site", SITE="berlin", **{"1st": "x"})
    worker = await world.worker(simulator.url)
    text = "hostname $(NAME)-$(SITE)\nip $(ADDRESS)\nenable $(PASSWORD)\n$$(NAME) $(OTHER) $(NODE)"
    definition = await world.define(configured(r1=text, r2="hostname $(NAME)", r3="hostname r3"))
    env = [
        NAME,
        {"name": "ADDRESS", "value": "10.0.0.$(INDEX) $(NAME)"},
        from_secret("login", "password"),
        {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
    ]
    containers = with_env(definition, *env, r2=[{"name": "NAME", "value": "$(NAME)-r2"}])
    containers[0]["envFrom"] = [{"configMapRef": {"name": "site"}}]
    lablets = [await world.pod(definition, worker, containers=containers) for _ in range(2)]
    for lablet in lablets:
        await lablet.ready()
        head = f"hostname {lablet.name}-berlin\nip 10.0.0.$(INDEX) {lablet.name}\nenable {PASSWORD}\n"
        assert configurations(simulator, lablet) == {
            "r1": f"{head}$(NAME) $(OTHER) vnode.{worker}",
            "r2": f"hostname {lablet.name}-r2",
            "r3": "hostname r3",
        }
        await eventually(lambda lablet=lablet: warnings(lablet), "a warning")  # type: ignore[misc]
        assert list(await warnings(lablet)) == ["InvalidEnvironmentVariableNames"]
    kept = replica.replica.objects.pods.items[f"{world.namespace}/{lablets[0].name}"]
    assert kept.spec.other_fields == ("env",), "the variables themselves are not kept"
    everything = [
        *(await world.admin.items(f"/api/v1/namespaces/{world.namespace}/pods")),
        *(await world.admin.items("/api/v1/events")),
        *(await world.admin.items(f"/api/v1/namespaces/{SYSTEM}/configmaps")),
    ]
    assert "s3cr3t" not in json.dumps(everything)
    assert "s3cr3t" not in "".join(capfd.readouterr())


async def test_for_a_pod_without_variables_nothing_is_read(world: World, simulator: CmlSimulator) -> None:
    replica = await world.replica()
    worker, definition = await world.worker(simulator.url), await world.define(configured(r1="$(NAME) $$(NAME)"))
    lablet = await world.pod(definition, worker)
    await lablet.ready()
    assert configurations(simulator, lablet) == {"r1": "$(NAME) $(NAME)"}
    assert replica.api.matching(f"^GET .*/namespaces/{world.namespace}/") == []


@pytest.mark.parametrize(
    ("kind", "reason"), [("secret", "MandatorySecretNotFound"), ("configMap", "MandatoryConfigMapNotFound")]
)
async def test_lablet_waits_for_what_it_refers_to(
    world: World, simulator: CmlSimulator, kind: str, reason: str
) -> None:
    await world.replica()
    await allow(world)
    worker, definition = await world.worker(simulator.url), await world.define(configured(r1="enable $(PASSWORD)"))
    variable = {"name": "PASSWORD", "valueFrom": {f"{kind}KeyRef": {"name": "login", "key": "password"}}}
    lablet = await world.pod(definition, worker, containers=with_env(definition, variable))
    word = kind.lower()
    said = await lablet.waits("CreateContainerConfigError")
    assert said["message"] == f'{word} "login" not found; trying again'
    assert (await lablet.until(bool))["status"]["phase"] == "Pending"
    await world.until_event(reason, lablet.name)
    make = secret if kind == "secret" else config_map
    await make(world, "login", other="x")
    message = f'key "password" does not exist in {word} "login"; trying again'
    await lablet.until(lambda pod: waiting(pod).get("message") == message, "the key is missing")
    assert imports(simulator) == []
    plural = "secrets" if kind == "secret" else "configmaps"
    data = {"password": base64.b64encode(b"p1").decode() if kind == "secret" else "p1"}
    await world.admin.patch(f"/api/v1/namespaces/{world.namespace}/{plural}/login", {"data": data})
    await lablet.ready()
    assert configurations(simulator, lablet) == {"r1": "enable p1"}
    assert (await warnings(lablet)) == {
        reason: f'{word} "login" not found',
        reason.replace("NotFound", "KeyNotFound"): f'key "password" does not exist in {word} "login"',
    }


async def test_provider_without_the_right_says_how_to_give_it(world: World, simulator: CmlSimulator) -> None:
    await world.replica()
    await secret(world, "login", password="p1")
    worker, definition = await world.worker(simulator.url), await world.define(configured(r1="enable $(PASSWORD)"))
    lablet = await world.pod(definition, worker, containers=with_env(definition, from_secret("login", "password")))
    optional = with_env(definition, from_secret("login", "password", optional=True))
    without = await world.pod(definition, worker, containers=optional)
    message = (await lablet.waits("CreateContainerConfigError"))["message"]
    assert 'failed to read secret "login": the provider may not read it; allow it: ' in message
    assert f"kubectl -n {world.namespace} create rolebinding vkprovider-parameters" in message
    await world.until_event("FailedToReadMandatorySecret", lablet.name)
    await without.ready()
    await world.until_event("FailedToReadOptionalSecret", without.name)
    assert configurations(simulator, without) == {"r1": "enable $(PASSWORD)"}
    await allow(world)
    await lablet.ready()
    assert configurations(simulator, lablet) == {"r1": "enable p1"}


async def test_pod_that_refers_to_too_much_is_refused(world: World, simulator: CmlSimulator) -> None:
    await world.replica()
    await allow(world)
    worker, definition = await world.worker(simulator.url), await world.define()
    for name in ("large", "huge"):
        await config_map(world, name, text="x" * 600_000)
    for sources, message in (
        ([f"no-{i}" for i in range(17)], "the variables refer to 17 ConfigMaps and Secrets, at most 16"),
        (["large", "huge"], "the ConfigMaps and Secrets of the variables have more than 1048576 characters"),
    ):
        [container] = with_env(definition)
        container["envFrom"] = [{"configMapRef": {"name": name}} for name in sources]
        lablet = await world.pod(definition, worker, containers=[container])
        assert (await lablet.waits("CreateContainerConfigError"))["message"].startswith(message)
        await world.until_event("CreateContainerConfigError", lablet.name)
    assert imports(simulator) == []


async def test_what_a_pod_of_the_providers_namespace_refers_to_is_not_read(
    world: World, simulator: CmlSimulator
) -> None:
    """There are the passwords of the workers; who may create Pods there must not see them by way of a lab."""
    replica = await world.replica()
    worker, definition = await world.worker(simulator.url), await world.define(configured(r1="enable $(PASSWORD)"))
    world.namespace, own = SYSTEM, world.namespace
    [container] = with_env(definition, from_secret(worker, "password"))
    confined = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "runAsNonRoot": True}
    container["securityContext"] = {**confined, "seccompProfile": {"type": "RuntimeDefault"}}
    lablet = await world.pod(definition, worker, containers=[container], serviceAccountName="vkprovider")
    world.namespace = own
    message = (await lablet.waits("CreateContainerConfigError"))["message"]
    assert f"namespace {SYSTEM} is the provider's; move the pod to another one" in message
    assert imports(simulator) == []
    assert replica.ctx.namespace == SYSTEM
    await lablet.delete(grace_s=0)
    await lablet.gone()


async def test_text_of_a_refusal_is_withheld_where_it_may_quote_a_secret(world: World, simulator: CmlSimulator) -> None:
    await world.replica()
    await allow(world)
    await secret(world, "login", password="s3cr3t")
    worker, definition = await world.worker(simulator.url), await world.define(configured(r1="enable $(PASSWORD)"))
    simulator.faults.add(Fault(kind="status", status=400, route="^POST .*/import"), simulator.now())
    lablet = await world.pod(definition, worker, containers=with_env(definition, from_secret("login", "password")))
    message = (await lablet.waits("ImportRefused"))["message"]
    assert message.startswith("the worker answered 400 to the import; its text is withheld")
    await world.until_event("ImportRefused", lablet.name)
    plain = with_env(definition, {"name": "PASSWORD", "value": "open"})
    quoted = await world.pod(definition, worker, containers=plain)
    assert "POST /import: 400" in (await quoted.waits("ImportRefused"))["message"]
    simulator.faults.clear()
    await lablet.ready()


async def test_warnings_of_an_import_are_withheld_where_they_may_quote_a_secret(
    world: World, simulator: CmlSimulator
) -> None:
    await world.replica()
    await secret(world, "login", password="s3cr3t")
    await allow(world)
    text = topology({"h0": "acme"}).replace("node_definition: acme", "node_definition: acme\n  cpus: 1\n  ram: 512")
    worker, definition = await world.worker(simulator.url), await world.define(text)
    lablet = await world.pod(definition, worker, containers=with_env(definition, from_secret("login", "password")))
    event = await world.until_event("ImportWarned", lablet.name)
    assert "1 warning, withheld because the configurations hold values of Secrets" in event["message"]
    assert "acme" not in event["message"]


async def test_lab_whose_import_was_not_answered_is_found_although_its_secret_is_gone(
    world: World, simulator: CmlSimulator
) -> None:
    first = await world.replica(MORTAL)
    await allow(world)
    await secret(world, "login", password="p1")
    worker, definition = await world.worker(simulator.url), await world.define(configured(r1="enable $(PASSWORD)"))
    simulator.faults.add(Fault(kind="lost_answer", route="^POST .*/import"), simulator.now())
    lablet = await world.pod(definition, worker, containers=with_env(definition, from_secret("login", "password")))
    await when(lambda: labs(simulator), "a lab")
    await first.crash()
    simulator.faults.clear()
    await world.admin.delete(f"/api/v1/namespaces/{world.namespace}/secrets/login")
    await world.replica(MORTAL)
    await lablet.ready()
    assert len(labs(simulator)) == 1
    assert configurations(simulator, lablet) == {"r1": "enable p1"}


async def test_fields_that_mean_nothing_are_named_once(world: World, simulator: CmlSimulator) -> None:
    first = await world.replica(MORTAL)
    worker, definition = await world.worker(simulator.url), await world.define()
    probe = {"httpGet": {"path": "/", "port": 80}}
    container = {
        "name": "lab",
        "image": definition,
        "ports": [{"containerPort": 80}],
        "livenessProbe": probe,
        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
    }
    volumes = [{"name": "v", "emptyDir": {}}]
    lablet = await world.pod(definition, worker, containers=[container], volumes=volumes)
    plain = await world.pod(definition, worker)
    await lablet.ready()
    await plain.ready()
    await world.until_event("FieldIgnored", lablet.name)
    await first.stop()
    await world.replica(MORTAL)
    later = await world.pod(definition, worker, containers=[container], volumes=volumes)
    await later.ready()
    await world.until_event("FieldIgnored", later.name)
    text = "a lablet has no livenessProbe, ports, volumeMounts, volumes: these fields of the pod are ignored"
    assert await warnings(lablet) == {"FieldIgnored": text}
    assert await warnings(plain) == {}
