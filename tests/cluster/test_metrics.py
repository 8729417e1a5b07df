"""A provider that is a process exports what docs/reference/metrics.md says, and counts what happens."""

import http.client
import re
from pathlib import Path

import yaml
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

import vkprovider
from tests.support.cluster import Cluster, is_ready
from tests.support.topologies import definition, deployment
from tests.support.waiting import until

HOME = Path(vkprovider.__file__).parents[1]
PAGE = HOME / "docs" / "reference" / "metrics.md"
OF_PROVIDER, OF_MUXES = PAGE.read_text().split("\n## `vkprovider mux`\n")
MONITORING = HOME / "manifests" / "monitoring"
ROW = re.compile(r"\| `(?P<name>[a-z_]+)` \| (?P<kind>[a-z]+) \| (?P<labels>[^|]*) \| (?P<help>.+) \|")


def scrape(cluster: Cluster) -> dict[str, Metric]:
    """Read /metrics as Prometheus does; counters by their full name."""
    connection = http.client.HTTPConnection(cluster.provider_url.removeprefix("http://"), timeout=5)
    try:
        connection.request("GET", "/metrics")
        answer = connection.getresponse()
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        text = answer.read().decode()
    finally:
        connection.close()
    families = text_string_to_metric_families(text)
    return {f"{f.name}_total" if f.type == "counter" else f.name: f for f in families}


def values(family: Metric, suffix: str = "", **labels: str) -> list[float]:
    """Give the values of all series with these labels."""
    return [
        sample.value
        for sample in family.samples
        if sample.name.endswith(suffix) and labels.items() <= sample.labels.items()
    ]


def series_of(uid: str, families: dict[str, Metric]) -> set[str]:
    """Name the metrics that have a series of an instance."""
    return {name for name, f in families.items() if any(s.labels.get("instance_id") == uid for s in f.samples)}


def test_the_page_and_what_is_exported_agree(cluster: Cluster, namespace: str) -> None:
    cluster.define(definition("measured"))
    cluster.apply(deployment("measured", "measured", 1), namespace=namespace)
    cluster.wait_ready(namespace, 1)
    exported = scrape(cluster)
    rows = [match for line in OF_PROVIDER.splitlines() if (match := ROW.fullmatch(line))]
    assert {(row["name"], row["kind"]) for row in rows} == {(name, family.type) for name, family in exported.items()}
    for row in rows:
        if not row["name"].startswith("process_"):  # the words there are prometheus_client's
            assert exported[row["name"]].documentation == row["help"]
    for row in rows:
        documented = set(re.findall(r"`([a-z_]+)`", row["labels"]))
        for sample in exported[row["name"]].samples:
            assert set(sample.labels) - {"le"} == documented, sample


def test_names_follow_the_rules_of_prometheus(cluster: Cluster) -> None:
    for name, family in scrape(cluster).items():
        assert name.startswith(("vkprovider_", "process_", "instance_", "lab_")), name
        assert name.endswith("_total") == (family.type == "counter"), name
        if family.type == "histogram":
            assert name.endswith("_seconds"), name
        assert not re.search(r"_(ms|milliseconds|minutes|mib|kb)\b", name), name


def test_r000_126_to_129_a_lablet_from_its_beginning_to_its_end(cluster: Cluster, namespace: str) -> None:
    before = scrape(cluster)
    cluster.define(definition("counted"))
    cluster.apply(deployment("counted", "counted", 1), namespace=namespace)
    [pod] = cluster.wait_ready(namespace, 1)
    uid, worker = pod["metadata"]["uid"], cluster.simulator_of(pod).name
    lab = cluster.lab_of(pod)
    assert lab

    def booted() -> bool:
        families = scrape(cluster)
        assert values(families["lab_nodes_booted"], instance_id=uid, lab_id=lab["id"]) == [lab["node_count"]]
        assert values(families["instance_reconciliation_duration_seconds"], "_count", instance_id=uid) > [0]
        starts = [values(f["lab_start_duration_seconds"], "_count", worker_id=worker) for f in (before, families)]
        assert sum(starts[1]) > sum(starts[0])
        assert sum(values(families["vkprovider_claims"], worker=worker)) >= 1
        assert sum(values(families["vkprovider_lablets"], state="READY")) >= 1
        [imports] = values(families["vkprovider_cml_call_seconds"], "_count", operation="import_lab", code="200")
        assert imports >= 1
        assert values(families["instance_state_transitions_total"], from_state="INSTANTIATING", to_state="READY")
        return True

    until(booted, 30)
    assert not {s.labels["operation"] for s in scrape(cluster)["vkprovider_cml_call_seconds"].samples} & {"other"}
    cluster.kubectl("delete", "deployment", "counted", f"--namespace={namespace}")
    cluster.wait_gone(namespace)
    until(lambda: not series_of(uid, scrape(cluster)), 45, "series outlive their instance")


def test_what_is_written_is_counted_by_resource_and_verb(cluster: Cluster, namespace: str) -> None:
    cluster.define(definition("written"))
    cluster.apply(deployment("written", "written", 1), namespace=namespace)
    cluster.wait_ready(namespace, 1)
    writes = scrape(cluster)["vkprovider_api_writes_total"]
    assert sum(values(writes, resource="pods/status", verb="patch")) >= 1
    assert sum(values(writes, resource="leases", verb="update")) >= 1
    assert sum(values(writes, resource="configmaps")) >= 1
    assert sum(values(writes, resource="events", verb="create")) >= 1
    assert not values(writes, resource="other")


def test_a_worker_that_is_not_ready_shows(cluster: Cluster) -> None:
    worker = cluster.workers[0]

    def shown() -> tuple[list[float], list[float]]:
        families = scrape(cluster)
        return (
            values(families["vkprovider_worker_ready"], worker=worker.name),
            values(families["vkprovider_node_owned"], worker=worker.name),
        )

    until(lambda: shown() == ([1], [1]), 45)
    cluster.sandbox.stop(worker.process)
    until(lambda: not is_ready(cluster.node(worker)), 90, "the node stays Ready")
    until(lambda: shown() == ([0], [1]), 45)
    failed = scrape(cluster)["vkprovider_cml_call_seconds"]
    assert sum(values(failed, "_count", code="unreachable")) >= 1


def test_monitoring_is_accepted_by_the_cluster(cluster: Cluster) -> None:
    """The default as the API server sees it; what is for the operator needs the operator's own definitions."""
    said = cluster.kubectl("apply", "--dry-run=server", "-k", str(MONITORING)).stdout
    for name in ("service/vkprovider-metrics", "configmap/vkprovider-alerts", "configmap/vkprovider-dashboard"):
        assert f"{name} created" in said
    rendered = list(yaml.safe_load_all(cluster.kubectl("kustomize", str(MONITORING / "operator")).stdout))
    assert {item["kind"] for item in rendered} == {"PodMonitor", "PrometheusRule"}
    assert {item["metadata"]["namespace"] for item in rendered} == {"vkprovider-system"}
