"""Specs judged twice, by a real API server with our CRDs and by the models: same inputs, same verdict.

What the API server cannot check, the provider refuses later; those rows stand apart, so that none is there by accident.
"""

from collections.abc import AsyncIterator, Callable
from typing import Any, Final, NamedTuple

import pytest

from tests.support.apiserver import GROUP, Admin, ApiServer, Refused
from vkprovider.lablet.models.crd import crds
from vkprovider.lablet.models.definition import parse_definition_spec
from vkprovider.lablet.models.worker import parse_worker_spec
from vkprovider.platform.errors import InputError

WORKER: Final = {"url": "https://cml1.example.net"}
DEFINITION: Final = {"version": "1", "source": {"inline": "lab: {}"}}
CONFIG_MAP: Final = {"namespace": "n", "name": "m"}


class Row(NamedTuple):
    """A spec, and whether it is good."""

    kind: str
    spec: dict[str, Any]
    good: bool = False

    def __str__(self) -> str:
        return f"{'good' if self.good else 'wrong'}-{self.kind[:-1]}-{str(self.spec)[:60]}"


def worker(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in {**WORKER, **fields}.items() if value is not None}


def definition(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in {**DEFINITION, **fields}.items() if value is not None}


def package(**fields: Any) -> dict[str, Any]:
    return {"source": {"objectStore": fields}}


GOOD: Final = [
    *(
        Row("cmlworkers", spec, good=True)
        for spec in (
            worker(),
            worker(url=None, tunnel="mqtt"),
            worker(url=None, tunnel="http"),
            worker(environment="a", portRange={"start": 2000, "end": 2000}),
            worker(address="198.51.100.1", credentialsSecretName="a.b-c"),
            worker(capacity={"cpu": 64, "memory": "256Gi", "labs": 0, "labNodes": 5}, stats="On"),
            worker(nodeLabels={"topology.kubernetes.io/zone": "a"}, tls={"insecureSkipVerify": True}),
        )
    ),
    *(
        Row("labletdefinitions", spec, good=True)
        for spec in (
            definition(),
            definition(version="1.2.0_a-b", keepVersions=20, unreachableTolerationSeconds=300),
            definition(source={"configMap": CONFIG_MAP}),
            definition(version=None, **package(key="a/b.zip")),
            definition(version=None, formQualifiedName="form", **package()),
            definition(resources={"cpu": "2", "memory": "4Gi", "labNodes": 0, "ports": 0}, lds={"enabled": False}),
        )
    ),
]
WRONG: Final = [
    *(
        Row("cmlworkers", spec)
        for spec in (
            worker(url=None),
            worker(url=""),
            worker(tunnel="carrier-pigeon"),
            worker(environment=""),
            worker(environment="-a"),
            worker(environment="x" * 64),
            worker(portRange={"start": 3000, "end": 2000}),
            worker(portRange={"start": 0, "end": 2000}),
            worker(portRange={"start": 2000, "end": 65536}),
            worker(portRange={"start": 2000}),
            worker(credentialsSecretName="A"),
            worker(credentialsSecretName=""),
            worker(credentialsSecretName="x" * 254),
            worker(capacity={"labs": -1}),
            worker(stats="Maybe"),
            worker(tls={"insecureSkipVerify": "perhaps"}),
            worker(unknown=1),
        )
    ),
    *(
        Row("labletdefinitions", spec)
        for spec in (
            definition(version=None),
            definition(version=""),
            definition(version="latest"),
            definition(version="-1"),
            definition(version="x" * 129),
            definition(source=None),
            definition(source={}),
            definition(source={"inline": "lab: {}", "configMap": CONFIG_MAP}),
            definition(source={"configMap": {**CONFIG_MAP, "name": "../secrets"}}),
            definition(source={"configMap": {**CONFIG_MAP, "namespace": "A"}}),
            definition(source={"configMap": {**CONFIG_MAP, "key": "a b"}}),
            definition(source={"configMap": {"name": "m"}}),
            definition(**package()),
            definition(**package(key="../x.zip")),
            definition(**package(key="x.zip", bucket="B")),
            definition(keepVersions=0),
            definition(keepVersions=21),
            definition(unreachableTolerationSeconds=299),
            definition(resources={"ports": -1}),
            definition(deviceSecretName="a/b"),
            definition(unknown=1),
        )
    ),
]
LATER: Final = [
    Row("cmlworkers", worker(address="not an address")),
    Row("cmlworkers", worker(address="fe80::1%eth0")),
    Row("cmlworkers", worker(capacity={"cpu": "many"})),
    Row("cmlworkers", worker(capacity={"memory": "-8Gi"})),
    Row("cmlworkers", worker(nodeLabels={"a b": "c"})),
    Row("cmlworkers", worker(nodeLabels={"zone": "a b"})),
    Row("labletdefinitions", definition(resources={"cpu": "-5"})),
    Row("labletdefinitions", definition(formQualifiedName="../x", **package())),
    Row("labletdefinitions", definition(formQualifiedName="", **package())),
]
"""What only the provider refuses: the schema has no word for addresses, quantities, labels and joined names."""

KINDS: Final = {crd["spec"]["names"]["plural"]: crd["spec"]["names"]["kind"] for crd in crds()}
PARSE: Final[dict[str, Callable[[object], object]]] = {
    "cmlworkers": parse_worker_spec,
    "labletdefinitions": parse_definition_spec,
}


@pytest.fixture
async def admin(apiserver: ApiServer) -> AsyncIterator[Admin]:
    async with Admin(apiserver) as found:
        yield found


def told_by_the_provider(row: Row) -> str:
    """Return what the provider says against a spec; empty if it takes it."""
    try:
        PARSE[row.kind](row.spec)
    except InputError as error:
        return error.message
    return ""


async def told_by_the_api_server(admin: Admin, row: Row) -> str:
    """Return what the API server says against a spec, as kubectl asks it; empty if it takes it."""
    body = {"apiVersion": "vkprovider.io/v1alpha1", "kind": KINDS[row.kind], "metadata": {"name": "tried"}}
    try:
        await admin.request("POST", f"{GROUP}/{row.kind}?dryRun=All&fieldValidation=Strict", {**body, "spec": row.spec})
    except Refused as refusal:
        return str(refusal)
    return ""


@pytest.mark.parametrize("row", [*GOOD, *WRONG], ids=str)
async def test_both_say_the_same(admin: Admin, row: Row) -> None:
    provider, server = told_by_the_provider(row), await told_by_the_api_server(admin, row)
    assert (not provider, not server) == (row.good, row.good), f"provider: {provider!r}; API server: {server!r}"


@pytest.mark.parametrize("row", LATER, ids=str)
async def test_provider_refuses_what_the_api_server_cannot_judge(admin: Admin, row: Row) -> None:
    assert (told_by_the_provider(row) != "", await told_by_the_api_server(admin, row)) == (True, "")


async def test_environment_is_for_ever(admin: Admin) -> None:
    """A rule about a change, which no model sees."""
    name = "environment-is-for-ever"
    body = {"apiVersion": "vkprovider.io/v1alpha1", "kind": "CMLWorker", "metadata": {"name": name}}
    await admin.request("POST", f"{GROUP}/cmlworkers", {**body, "spec": worker(environment="a")})
    change = {"spec": {"environment": "b"}}
    with pytest.raises(Refused, match="environment cannot be changed"):
        await admin.request("PATCH", f"{GROUP}/cmlworkers/{name}", change, "application/merge-patch+json")
    await admin.request("DELETE", f"{GROUP}/cmlworkers/{name}")


@pytest.mark.parametrize(("kind", "spec"), [("cmlworkers", WORKER), ("labletdefinitions", DEFINITION)])
async def test_what_no_provider_has_seen_is_in_progress(admin: Admin, kind: str, spec: dict[str, Any]) -> None:
    """Flux, Helm and kstatus take an object without a status for ready, and wait for one of an older generation."""
    path = f"{GROUP}/{kind}/seen-by-nobody"
    meta = {"name": "seen-by-nobody"}
    body = {"apiVersion": "vkprovider.io/v1alpha1", "kind": KINDS[kind], "metadata": meta, "spec": spec}
    await admin.request("POST", f"{GROUP}/{kind}", body)
    found = await admin.request("GET", path)
    assert (found["status"], found["metadata"]["generation"]) == ({"observedGeneration": -1}, 1)
    await admin.request("DELETE", path)
