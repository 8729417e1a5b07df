"""Content packages from an S3 server to Pods that the scheduler places: read on request, kept (R000-068…082)."""

import base64
import gzip
import json
import re
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.cluster import Cluster, condition, is_ready, waiting_reason
from tests.support.plugin import lablet
from tests.support.s3 import SECRET_KEY, package, s3_server
from tests.support.sandboxes import started
from tests.support.topologies import pod, topology
from tests.support.waiting import until
from vkprovider.lablet import names
from vkpsandbox import Sandbox
from vkpsandbox.controlplane.programs import provider_process
from vkpsandbox.start import add_process

DEFINITIONS = "/apis/vkprovider.io/v1alpha1/labletdefinitions"
CONFIG_MAPS = "/api/v1/namespaces/vkprovider-system/configmaps"
RUNTIME_CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"
GRADE = "<grade><item points='1'>ü</item></grade>"


class Store:
    """The S3 server of these tests, which may be stopped and started again on its port."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._runs = 0
        self.start()

    def start(self, port: int = 0) -> None:
        self._runs += 1
        self.log = self._directory / f"log-{self._runs}"
        self._running = s3_server(self.log, port)
        self.s3 = self._running.__enter__()

    def stop(self) -> int:
        """End it; gives its port."""
        self._running.__exit__(None, None, None)
        return int(self.s3.url.rpartition(":")[2])

    def reads(self, key: str) -> int:
        """How often a package was read."""
        return len(re.findall(rf"GET /content/{re.escape(key)} ", self.log.read_text()))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    made = Store(tmp_path_factory.mktemp("s3"))
    yield made
    made.stop()


@pytest.fixture(scope="module")
def sandbox(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    settings = {"RECONCILE_INTERVAL": "1", "WORKER_PROBE_SECONDS": "1", "VKPROVIDER_PACKAGE_BYTES_MAX": "200000"}
    with started(
        "content",
        tmp_path_factory.mktemp("sandbox"),
        workers=1,
        provider_env={**settings, **store.s3.settings, "VKPROVIDER_CONTENT_TIMEOUT": "5"},
        worker_args=[["--boot-seconds=0.2"]],
    ) as made:
        yield made


def files(version: str, hosts: int = 1, **more: str) -> dict[str, str | bytes]:
    devices = {f"h{n}": "alpine" for n in range(hosts)}
    text = topology(devices, tags={"h0": ["serial:5065"]})
    return {"cml.yaml": text, "version": version, **{name.replace("_", "."): content for name, content in more.items()}}


def definition_of(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "vkprovider.io/v1alpha1",
        "kind": "LabletDefinition",
        "metadata": {"name": name},
        "spec": {"source": {"objectStore": {}}, "formQualifiedName": f"forms/{name}", **spec},
    }


class Netlab:
    """A definition with its package."""

    def __init__(self, cluster: Cluster, store: Store, name: str) -> None:
        self.cluster = cluster
        self.store = store
        self.name = name
        self.key = f"forms/{name}.zip"

    def upload(self, content: Mapping[str, str | bytes] | bytes) -> None:
        self.store.s3.put(self.key, content if isinstance(content, bytes) else package(content))

    def refresh(self, *arguments: str) -> tuple[int, str]:
        """Exit code and output of `kubectl lablet refresh`."""
        done = lablet(self.cluster, "refresh", self.name, *arguments)
        return done.returncode, done.stdout + (done.stderr if done.returncode else "")

    @property
    def found(self) -> dict[str, Any]:
        return self.cluster.get(f"{DEFINITIONS}/{self.name}") or {"status": {}}

    @property
    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = self.found.get("status", {})
        return status

    @property
    def versions(self) -> list[str]:
        return [item["version"] for item in self.status.get("versions", [])]

    def said(self, kind: str) -> tuple[str, str]:
        """Status and reason of a condition."""
        entry = condition(self.found, kind)
        return entry.get("status", ""), entry.get("reason", "")

    def events(self) -> dict[str, str]:
        """Message by reason."""
        return {event["reason"]: event["message"] for event in self.cluster.events("default", self.name)}

    def overhead(self) -> dict[str, str]:
        found = self.cluster.get(f"{RUNTIME_CLASSES}/{self.name}")
        assert found
        overhead: dict[str, str] = found["overhead"]["podFixed"]
        return overhead


@pytest.fixture
def netlab(cluster: Cluster, store: Store, request: pytest.FixtureRequest) -> Netlab:
    """A definition whose package 1.0.0 was read when it was created; one host, one port."""
    name = re.sub(r"[^a-z]+", "-", request.node.name.removeprefix("test_"))[:30].strip("-")
    made = Netlab(cluster, store, name)
    made.upload(files("1.0.0", grade_xml=GRADE))
    cluster.define(definition_of(name, keepVersions=2))
    until(lambda: made.said("Ready") == ("True", "ContentReady"), 30)
    return made


def content_of(cluster: Cluster, digest: str) -> dict[str, str]:
    """Read a stored version: name to text."""
    [found] = [item for item in cluster.items(CONFIG_MAPS) if item["metadata"]["name"].endswith(digest[:16])]
    assert found["immutable"]
    return {key: gzip.decompress(base64.b64decode(value)).decode() for key, value in found["binaryData"].items()}


def image_of(pod: dict[str, Any]) -> str:
    image: str = pod["status"]["containerStatuses"][0]["image"]
    return image


def test_package_is_stored_whole_and_pods_run_it(cluster: Cluster, netlab: Netlab, namespace: str) -> None:
    """R000-068, R000-070, R000-071, R000-077: version, files, devices, ports; read once."""
    [version] = netlab.status["versions"]
    assert (version["version"], version["files"]) == ("1.0.0", ["grade.xml"])
    stored = content_of(cluster, version["digest"])
    assert stored == {"cml.yaml.gz": files("1.0.0")["cml.yaml"], "grade.xml.gz": GRADE}
    assert [device["label"] for device in netlab.status["devices"]] == ["h0"]
    assert [(port["name"], port["device"], port["opened"]) for port in netlab.status["portTemplate"]] == [
        ("h0_serial", "h0", True)
    ]
    assert netlab.said("Refreshed") == ("True", "ContentStored")
    assert netlab.status["lastRefresh"] | {"time": ""} == {
        "request": "",
        "requestedBy": "",
        "time": "",
        "result": "Stored",
        "version": "1.0.0",
        "devices": 1,
    }
    cluster.apply(pod("lab", netlab.name, version="1.0.0"), namespace=namespace)
    [found] = cluster.wait_ready(namespace, 1)
    assert cluster.lab_of(found)
    assert netlab.store.reads(netlab.key) == 1


def test_nothing_is_read_unless_somebody_asks(cluster: Cluster, netlab: Netlab) -> None:
    """R000-072: not by a change of something else, not by a restart of the provider."""
    netlab.upload(files("2.0.0"))
    cluster.patch(f"{DEFINITIONS}/{netlab.name}", {"spec": {"resources": {"cpu": "3"}, "keepVersions": 3}})
    until(lambda: netlab.overhead()["cpu"] == "3", 30)
    cluster.sandbox.stop("provider-1")
    cluster.sandbox.start("provider-1")
    cluster.patch(f"{DEFINITIONS}/{netlab.name}", {"spec": {"resources": {"cpu": "4"}}})
    until(lambda: netlab.overhead()["cpu"] == "4", 90)
    assert (netlab.versions, netlab.store.reads(netlab.key)) == (["1.0.0"], 1)


def test_refresh_brings_the_next_version_to_new_pods(cluster: Cluster, netlab: Netlab, namespace: str) -> None:
    """R000-073, R000-075, R000-076, R000-079, R000-082."""
    cluster.apply(pod("old", netlab.name), namespace=namespace)
    [old] = cluster.wait_ready(namespace, 1)
    small = netlab.overhead()
    netlab.upload(files("1.1.0", 3))
    code, said = netlab.refresh("-o", "json")
    assert code == 0, said
    told = json.loads(said)
    by = told["refreshedBy"]
    assert (told["result"], told["version"], told["devices"]) == ("Stored", "1.1.0", 3)
    assert told["definition"] == netlab.name
    assert by == json.loads(cluster.kubectl("auth", "whoami", "-o", "json").stdout)["status"]["userInfo"]["username"]
    assert netlab.status["versions"][0]["refreshedBy"] == by
    assert netlab.versions == ["1.1.0", "1.0.0"]
    assert f"version 1.1.0 of 3 devices is ready, asked for by {by}" in netlab.events()["ContentStored"]
    assert int(netlab.overhead()[names.RESOURCE_LAB_NODES]) == 3 > int(small[names.RESOURCE_LAB_NODES])

    cluster.apply(pod("new", netlab.name), pod("pinned", netlab.name, version="1.0.0"), namespace=namespace)
    pods = {item["metadata"]["name"]: item for item in cluster.wait_ready(namespace, 3)}
    images = {name: image_of(item) for name, item in pods.items()}
    assert images == {
        name: f"{netlab.name}:{v}" for name, v in (("old", "1.0.0"), ("new", "1.1.0"), ("pinned", "1.0.0"))
    }
    assert pods["old"]["metadata"]["uid"] == old["metadata"]["uid"]
    assert pods["old"]["status"]["containerStatuses"][0]["restartCount"] == 0


def test_versions_that_are_not_kept_are_refused_with_those_that_are(
    cluster: Cluster, netlab: Netlab, namespace: str
) -> None:
    for version in ("1.1.0", "1.2.0"):
        netlab.upload(files(version))
        assert netlab.refresh()[0] == 0
    assert netlab.versions == ["1.2.0", "1.1.0"]
    cluster.apply(pod("gone", netlab.name, version="1.0.0"), namespace=namespace)
    until(lambda: waiting_reason(cluster.pod(namespace, "gone")) == "UnknownVersion", 30)
    found = cluster.pod(namespace, "gone")
    assert found
    message = found["status"]["containerStatuses"][0]["state"]["waiting"]["message"]
    assert "has no version '1.0.0'; it keeps 1.2.0, 1.1.0" in message


def test_pod_from_before_runs_what_its_own_charge_covers(cluster: Cluster, netlab: Netlab, namespace: str) -> None:
    """Admission wrote its overhead when it was created."""
    held: dict[str, Any] = {"schedulingGates": [{"name": "example.com/held"}]}
    cluster.apply(
        pod("any", netlab.name, **held), pod("pinned", netlab.name, version="1.1.0", **held), namespace=namespace
    )
    netlab.upload(files("1.1.0", 3))
    assert netlab.refresh()[0] == 0
    for name in ("any", "pinned"):
        cluster.patch(f"/api/v1/namespaces/{namespace}/pods/{name}", {"spec": {"schedulingGates": None}})
    until(lambda: waiting_reason(cluster.pod(namespace, "pinned")) == "ChargedTooLittle", 45)
    found = until(lambda: next((p for p in cluster.pods(namespace) if is_ready(p)), None), 45)
    assert found
    assert (found["metadata"]["name"], image_of(found)) == ("any", f"{netlab.name}:1.0.0")


def test_unchanged_version_is_taken_by_force_only(netlab: Netlab) -> None:
    """R000-075."""
    [before] = netlab.status["versions"]
    code, said = netlab.refresh()
    assert (code, "version 1.0.0 is the current one already" in said, "differ" in said) == (0, True, False)
    netlab.upload(files("1.0.0", 2))
    code, said = netlab.refresh()
    assert (code, "its files differ, and were not taken: raise the package's version" in said) == (0, True)
    assert netlab.status["versions"] == [before]
    code, said = netlab.refresh("--force")
    assert (code, "version 1.0.0 of 2 devices is ready" in said) == (0, True)
    [after] = netlab.status["versions"]
    assert after["digest"] != before["digest"]
    assert [device["label"] for device in netlab.status["devices"]] == ["h0", "h1"]


def test_earlier_version_comes_back(cluster: Cluster, netlab: Netlab, namespace: str) -> None:
    """The same object becomes the current one again; who runs it meanwhile keeps it."""
    cluster.apply(pod("first", netlab.name), namespace=namespace)
    cluster.wait_ready(namespace, 1)
    [first] = netlab.status["versions"]
    for version, hosts, more in (("1.1.0", 2, {}), ("1.0.0", 1, {"grade_xml": GRADE})):
        netlab.upload(files(version, hosts, **more))
        assert netlab.refresh()[0] == 0
    assert netlab.versions == ["1.0.0", "1.1.0"]
    assert netlab.status["versions"][0]["digest"] == first["digest"]
    assert [device["label"] for device in netlab.status["devices"]] == ["h0"]
    cluster.apply(pod("second", netlab.name), namespace=namespace)
    pods = cluster.wait_ready(namespace, 2)
    assert {image_of(item) for item in pods} == {f"{netlab.name}:1.0.0"}


BAD: dict[str, tuple[Mapping[str, str | bytes] | bytes, str, str]] = {
    "no-zip": (b"not a zip", "PackageInvalid", "it is not a zip"),
    "no-topology": ({"version": "2"}, "PackageInvalid", "cml.yaml is missing"),
    "bad-topology": ({"version": "2", "cml.yaml": "lab: {}"}, "TopologyInvalid", "lab.version is missing"),
    "bad-grade": (files("2", grade_xml="<a>"), "PackageInvalid", "grade.xml is not XML"),
    "unknown-device": (
        {"version": "2", "cml.yaml": topology({"h0": "mine"})},
        "ResourcesUnknown",
        "definition 'mine' is unknown",
    ),
    "traversal": ({**files("2"), "../../etc/x": "y"}, "PackageInvalid", "leads out of the package"),
    "bomb": ({**files("2"), "zeros": bytes(101 * 2**20)}, "PackageTooLarge", "VKPROVIDER_PACKAGE_UNPACKED_BYTES_MAX"),
    "too-large": (bytes(200_001), "PackageTooLarge", "VKPROVIDER_PACKAGE_BYTES_MAX"),
}


def test_bad_package_changes_nothing_and_says_why(cluster: Cluster, netlab: Netlab, namespace: str) -> None:
    """R000-078."""
    before = netlab.status["versions"]
    for content, reason, message in BAD.values():
        netlab.upload(content)
        code, said = netlab.refresh()
        assert code == 1
        assert f"keeps what it has: {reason}: " in said
        assert message in said
        assert netlab.said("Refreshed") == ("False", reason)
        assert netlab.said("Ready") == ("True", "ContentReady")
        assert netlab.status["versions"] == before
        until(lambda reason=reason: reason in netlab.events(), 30)  # type: ignore[misc]
    cluster.apply(pod("lab", netlab.name), namespace=namespace)
    cluster.wait_ready(namespace, 1)
    netlab.upload(files("2.0.0"))
    assert netlab.refresh()[0] == 0
    assert (netlab.said("Refreshed"), netlab.versions) == (("True", "ContentStored"), ["2.0.0", "1.0.0"])


def test_first_package_that_is_missing_and_then_there(cluster: Cluster, store: Store) -> None:
    netlab = Netlab(cluster, store, "missing")
    cluster.delete_later("labletdefinition", "missing")
    cluster.apply(definition_of("missing"))
    until(lambda: netlab.said("Ready") == ("False", "PackageNotFound"), 30)
    assert "s3://content/forms/missing.zip at " in condition(netlab.found, "Ready")["message"]
    until(lambda: [event["count"] for event in cluster.events("default", "missing")] == [1], 30)
    netlab.upload(files("1"))
    assert netlab.refresh()[0] == 0
    assert (netlab.said("Ready"), netlab.versions) == (("True", "ContentReady"), ["1"])


def test_store_that_is_down_stops_no_lablet(cluster: Cluster, netlab: Netlab, namespace: str) -> None:
    """R000-071; and a request outlives both, the store's absence and the provider's."""
    port = netlab.store.stop()
    try:
        assert netlab.refresh("--no-wait")[0] == 0
        until(lambda: netlab.said("Refreshed") == ("False", "ContentStoreUnavailable"), 45)
        code, said = netlab.refresh("--timeout=2s")
        assert code == 1
        assert "no answer within 2 s, the request stands: ContentStoreUnavailable: s3://content/forms/" in said
        assert netlab.said("Ready") == ("True", "ContentReady")
        cluster.sandbox.stop("provider-1")
        cluster.sandbox.start("provider-1")
        cluster.apply(pod("lab", netlab.name), namespace=namespace)
        cluster.wait_ready(namespace, 1)
    finally:
        cluster.sandbox.kill("provider-1", signal.SIGSTOP)  # an empty store would be an answer
        try:
            netlab.store.start(port)
            netlab.upload(files("3.0.0"))
        finally:
            cluster.sandbox.kill("provider-1", signal.SIGCONT)
    until(lambda: netlab.versions == ["3.0.0", "1.0.0"], 210)
    assert netlab.said("Refreshed") == ("True", "ContentStored")


def test_definition_that_does_not_exist(cluster: Cluster, store: Store) -> None:
    """R000-074."""
    code, said = Netlab(cluster, store, "nobody").refresh()
    assert (code, "LabletDefinition 'nobody' does not exist" in said) == (1, True)


def test_keys_are_told_to_nobody(cluster: Cluster, netlab: Netlab) -> None:
    """R000-122."""
    assert SECRET_KEY not in cluster.sandbox.layout.log("provider-1").read_text()
    assert SECRET_KEY not in json.dumps([netlab.found, cluster.items(CONFIG_MAPS), cluster.items("/api/v1/events")])


def test_config_map_is_read_again_by_the_same_command(cluster: Cluster, store: Store, namespace: str) -> None:
    """R000-072."""
    cluster.kubectl(
        "create",
        "rolebinding",
        "topologies",
        f"--namespace={namespace}",
        "--clusterrole=vkprovider-topology-reader",
        "--serviceaccount=vkprovider-system:vkprovider",
    )
    found = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mapped"}}
    cluster.apply({**found, "data": {"cml.yaml": topology({"h0": "alpine"})}}, namespace=namespace)
    source = {"configMap": {"namespace": namespace, "name": "mapped"}}
    cluster.define(definition_of("mapped", source=source, version="1"))
    mapped = Netlab(cluster, store, "mapped")
    cluster.apply({**found, "data": {"cml.yaml": topology({"h0": "alpine", "h1": "alpine"})}}, namespace=namespace)
    cluster.patch(f"{DEFINITIONS}/mapped", {"spec": {"resources": {"cpu": "3"}}})
    until(lambda: mapped.overhead()["cpu"] == "3", 30)
    assert [device["label"] for device in mapped.status["devices"]] == ["h0"]
    assert "version 1 of 2 devices is ready, asked for by " in mapped.refresh()[1]
    assert [device["label"] for device in mapped.status["devices"]] == ["h0", "h1"]
    assert "version 1 is the current one already" in mapped.refresh()[1]
    cluster.apply({**found, "data": {"cml.yaml": "no topology"}}, namespace=namespace)
    code, said = mapped.refresh()
    assert (code, "keeps what it has: TopologyInvalid: " in said) == (1, True)
    assert [item["version"] for item in mapped.status["versions"]] == ["1"]


def test_lablets_need_no_settings_of_a_store(cluster: Cluster, netlab: Netlab, namespace: str) -> None:
    """R000-071. The last test here: the provider that it starts knows no object store."""
    layout = cluster.sandbox.layout
    cluster.sandbox.stop("provider-1")
    settings = {"RECONCILE_INTERVAL": "1", "WORKER_PROBE_SECONDS": "1"}
    add_process(layout, provider_process(layout.provider_kubeconfig, 2, settings))
    try:
        cluster.apply(pod("lab", netlab.name), namespace=namespace)
        cluster.wait_ready(namespace, 1)
        assert netlab.versions == ["1.0.0"]
        assert netlab.said("Ready") == ("True", "ContentReady")
    finally:
        cluster.sandbox.start("provider-1")
