"""CMLWorkers that are wrong, as kubectl shows them and their Nodes: the reason, the doctor's remedy, a correction."""

import math
import ssl
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from typing import Any, NamedTuple

import pytest

from tests.support.cluster import Cluster, Refused, condition, is_ready
from tests.support.doctor import examine
from tests.support.extra import (
    ACCOUNT,
    CMLWORKERS,
    LOGINS,
    SYSTEM,
    Controllers,
    Extra,
    Program,
    cmlworker,
    expired_certificate,
    secret,
)
from tests.support.waiting import until
from vkprovider.doctor.findings import Finding
from vkpsandbox import Sandbox, SandboxError

PASSWORD = "wr0ng-S3cret"
SECRETS = f"/api/v1/namespaces/{LOGINS}/secrets"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


class Bad(NamedTuple):
    """A CMLWorker that is wrong.

    Attributes:
        spec: What is wrong with its spec.
        secret: What its Secret holds; None: there is none.
        reason: Of its condition Ready.
        message: Part of the message.
        cure: What is patched into the spec; nothing: its Secret is made good.
    """

    spec: dict[str, Any]
    secret: dict[str, str] | None
    reason: str
    message: str
    cure: dict[str, Any] | None = None


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Program]]:
    """Simulators: one whose certificate has expired, one that is too old."""
    folder = tmp_path_factory.mktemp("certificates")
    certificate, key = expired_certificate("127.0.0.1")
    (folder / "expired.pem").write_bytes(certificate)
    (folder / "expired.key").write_bytes(key)
    with ExitStack() as stack:
        made = {
            "expired": Program(f"--cert={folder / 'expired.pem'}", f"--key={folder / 'expired.key'}", tls=False),
            "old": Program("--version=2.6.1+build.11"),
        }
        for program in made.values():
            stack.callback(program.close)
        yield made


@pytest.fixture(scope="module")
def controllers() -> Iterator[Controllers]:
    """Good simulators, one for each CMLWorker."""
    made = Controllers()
    yield made
    made.close()


def certificate_of(program: Program) -> str:
    """Fetch a server's certificate, PEM."""
    host, _, port = program.url.removeprefix("https://").rpartition(":")
    return ssl.get_server_certificate((host, int(port)))


def bad_workers(programs: dict[str, Program], controllers: Controllers, api: str) -> dict[str, Bad]:
    """Name: what is wrong. All of them would be good with the URL of a good simulator of that name, and its account."""
    account = dict(ACCOUNT)
    urls = ("no-url", "half-a-url", "url-with-path", "url-with-password", "no-host", "no-port", "no-cml", "too-old")
    url = {name: {"url": controllers.url(name)} for name in urls}
    return {
        "wrong-password": Bad(
            {}, {**ACCOUNT, "password": PASSWORD}, "CredentialsInvalid", "refused the login: check username"
        ),
        "no-secret": Bad({}, None, "CredentialsInvalid", f"Secret {LOGINS}/no-secret does not exist; create it"),
        "no-label": Bad({}, account, "SecretNotAllowed", "secret no-label vkprovider.io/used-for=worker"),
        "other-host": Bad(
            {}, account, "SecretNotAllowed", f"cml.example.com,{controllers.url('other-host')[len('https://') :]}"
        ),
        "half-a-secret": Bad({}, {"username": "x"}, "CredentialsInvalid", "lacks the key password"),
        "line-break": Bad(
            {}, {**ACCOUNT, "password": f"{ACCOUNT['password']}\n"}, "CredentialsInvalid", "ends with a line break; use"
        ),
        "empty-secret": Bad({}, {}, "CredentialsInvalid", "lacks the key username and password"),
        "nameless-secret": Bad(
            {"credentialsSecretName": None},
            account,
            "CredentialsInvalid",
            "spec.credentialsSecretName is not set; name a Secret",
            {"credentialsSecretName": "nameless-secret"},
        ),
        "self-signed": Bad(
            {"tls": {}},
            account,
            "CertificateInvalid",
            "is self-signed: put it into spec.tls.caBundle",
            {"tls": {"caBundle": controllers.certificate}},
        ),
        "expired": Bad(
            {"url": programs["expired"].url, "tls": {"caBundle": certificate_of(programs["expired"])}},
            account,
            "CertificateInvalid",
            "has expired: renew it on the worker",
            {"tls": {"insecureSkipVerify": True}},
        ),
        "no-ca": Bad(
            {"tls": {"caBundle": "garbage"}},
            account,
            "CaBundleInvalid",
            "the CA bundle holds no certificate in PEM form",
            {"tls": {"caBundle": controllers.certificate}},
        ),
        "no-url": Bad({"url": "nonsense"}, account, "WorkerUrlInvalid", "'nonsense': the scheme is not", url["no-url"]),
        "half-a-url": Bad({"url": "https://[::1"}, account, "WorkerUrlInvalid", "Invalid IPv6 URL", url["half-a-url"]),
        "url-with-path": Bad(
            {"url": f"{controllers.url('url-with-path')}/api/v0"},
            account,
            "WorkerUrlInvalid",
            "a path or query",
            url["url-with-path"],
        ),
        "url-with-password": Bad(
            {"url": f"https://admin:{PASSWORD}@cml1"},
            account,
            "WorkerUrlInvalid",
            "belong in the credentials",
            url["url-with-password"],
        ),
        "no-host": Bad({"url": "https://cml.invalid"}, account, "WorkerUnreachable", "cml.invalid:443", url["no-host"]),
        "no-port": Bad(
            {"url": "https://127.0.0.1:1"}, account, "WorkerUnreachable", "Connection refused", url["no-port"]
        ),
        "no-cml": Bad(
            {"url": api},
            account,
            "WorkerUnreachable",
            "by something other than CML: check the worker's url",
            url["no-cml"],
        ),
        "too-old": Bad(
            {"url": programs["old"].url},
            account,
            "UnsupportedVersion",
            "CML '2.6.1+build.11' is not supported",
            url["too-old"],
        ),
        "no-capacity": Bad(
            {"capacity": {"cpu": "4"}},
            account,
            "CapacityUnknown",
            "spec.capacity lacks memory, labNodes; set it, or set spec.stats: On",
            {"stats": "On"},
        ),
        "negative": Bad(
            {"capacity": {"cpu": "-4", "memory": "8Gi", "labNodes": 5}},
            account,
            "SpecInvalid",
            "spec.capacity.cpu: '-4' is negative",
            {"capacity": {"cpu": "4"}},
        ),
        "bad-label": Bad(
            {"nodeLabels": {"a b": "c"}},
            account,
            "SpecInvalid",
            "'a b' cannot be the name of a label",
            {"nodeLabels": {"a b": None}},
        ),
        "bad-address": Bad(
            {"address": "no address"},
            account,
            "SpecInvalid",
            "is neither an IP address nor a DNS name",
            {"address": "198.51.100.77"},
        ),
    }


class View(NamedTuple):
    """A CMLWorker as users see it: its condition Ready, its Node, the doctor's lines about it."""

    ready: dict[str, Any]
    node: dict[str, Any] | None
    findings: list[Finding]


class Story(NamedTuple):
    """All bad CMLWorkers, before and after their correction, what was said and tried meanwhile, and for how long.

    Before their correction the doctor was asked so many times.
    """

    bad: dict[str, Bad]
    before: dict[str, View]
    after: dict[str, View]
    said: str
    logins_refused: int
    judged_for_s: float
    doctors: int


def look(cluster: Cluster, names: Iterable[str]) -> dict[str, View]:
    """Look at CMLWorkers."""
    workers = {item["metadata"]["name"]: condition(item, "Ready") for item in cluster.items(CMLWORKERS)}
    nodes = {item["metadata"]["name"]: item for item in cluster.items("/api/v1/nodes")}
    faults = [f for f in examine(cluster).findings if f.level == "fault"]
    return {
        name: View(workers[name], nodes.get(f"vnode.{name}"), [f for f in faults if f.object == f"CMLWorker/{name}"])
        for name in names
    }


@pytest.fixture(scope="module")
def story(sandbox: Sandbox, programs: dict[str, Program], controllers: Controllers) -> Story:
    """Create all bad CMLWorkers, look, correct them, look again, delete them."""
    cluster = Cluster(sandbox)
    bad = bad_workers(programs, controllers, sandbox.process("kube-apiserver").url)

    def ready() -> dict[str, dict[str, Any]]:
        found = {item["metadata"]["name"]: condition(item, "Ready") for item in cluster.items(CMLWORKERS)}
        return {name: found.get(name, {}) for name in bad}

    def judged() -> bool:
        missing = [name for name, said in ready().items() if said.get("reason") in {None, "Starting"}]
        assert not missing, f"no reason on {missing}"
        return True

    looks: list[dict[str, View]] = []

    def told(reasons: Mapping[str, list[str]]) -> dict[str, View]:
        """Look, until the doctor finds this: it waits for a worker for 3 s, and a busy one may take longer."""
        looks.append(look(cluster, bad))
        assert {name: [f.reason for f in view.findings] for name, view in looks[-1].items()} == reasons
        return looks[-1]

    def healed() -> bool:
        sick = {name: said for name, said in ready().items() if said.get("status") != "True"}
        assert not sick
        sick = {i["metadata"]["name"]: i for i in cluster.items("/api/v1/nodes") if not is_ready(i)}
        assert not sick
        return True

    try:
        good = {name: controllers.url(name) for name in bad}
        kept = {
            name: secret(name, wrong.secret, good[name], str(wrong.spec.get("url", good[name])))
            for name, wrong in bad.items()
            if wrong.secret is not None
        }
        kept["other-host"]["metadata"]["annotations"]["vkprovider.io/host"] = "https://cml.example.com"
        del kept["no-label"]["metadata"]["labels"]
        cluster.apply(*kept.values(), namespace=LOGINS)
        began = time.monotonic()
        cluster.apply(*(cmlworker(n, **{"url": good[n], **b.spec}) for n, b in bad.items()))
        until(judged, 60)
        before = until(lambda: told({name: [wrong.reason] for name, wrong in bad.items()}), 60)
        doctors = len(looks)
        cluster.apply(*(secret(n, ACCOUNT, good[n]) for n, b in bad.items() if b.cure is None), namespace=LOGINS)
        for name in [name for name, wrong in bad.items() if wrong.cure is not None]:
            cluster.patch(f"{CMLWORKERS}/{name}", {"spec": bad[name].cure})
        until(healed, 60)
        judged_for_s = time.monotonic() - began
        after = until(lambda: told({name: [] for name in bad}), 60)
        said = cluster.kubectl("get", "events,cmlworkers,nodes", "-A", "-o", "json").stdout
        said += sandbox.layout.log("provider-1").read_text()
        log = Extra(cluster, "wrong-password", good["wrong-password"]).simulator.access_log()
    finally:
        for path in [f"{where}/{name}" for where in (CMLWORKERS, SECRETS) for name in bad]:
            with suppress(Refused):
                cluster.request("DELETE", path)
    refused = [entry for entry in log if entry["path"].endswith("/authenticate") and entry["status"] == 403]
    said = said.replace(bad["url-with-password"].spec["url"], "")
    return Story(bad, before, after, said, len(refused), judged_for_s, doctors)


@pytest.mark.parametrize(
    "name",
    [
        "wrong-password",
        "no-secret",
        "no-label",
        "other-host",
        "half-a-secret",
        "line-break",
        "empty-secret",
        "nameless-secret",
        "self-signed",
        "expired",
        "no-ca",
        "no-url",
        "half-a-url",
        "url-with-path",
        "url-with-password",
        "no-host",
        "no-port",
        "no-cml",
        "too-old",
        "no-capacity",
        "negative",
        "bad-label",
        "bad-address",
    ],
)
def test_worker_is_refused_with_its_reason_until_it_is_corrected(story: Story, name: str) -> None:
    bad, seen = story.bad[name], story.before[name]
    assert (seen.ready["status"], seen.ready["reason"]) == ("False", bad.reason)
    assert bad.message in seen.ready["message"]
    if seen.node is not None:
        on_node = condition(seen.node, "Ready")
        assert (on_node["status"], on_node["reason"]) == ("False", bad.reason)
    [finding] = seen.findings
    assert finding.reason == bad.reason
    assert bad.message in finding.message
    assert finding.remedy
    seen = story.after[name]
    assert seen.ready["status"] == "True"
    assert is_ready(seen.node)
    assert seen.findings == []


def test_no_secret_was_told(story: Story) -> None:
    assert PASSWORD not in story.said
    assert ACCOUNT["password"] not in story.said


def test_refused_login_was_not_repeated_with_every_probe(story: Story) -> None:
    """The worker is probed every second, and CML limits logins: a pause doubles from 5 s on, two are each doctor's."""
    assert 1 <= story.logins_refused <= 1 + 2 * story.doctors + math.log2(1 + story.judged_for_s / 5)


def test_deleted_workers_left_nothing(story: Story, cluster: Cluster) -> None:
    gone = set(story.bad)

    def left() -> list[str]:
        nodes = [f"vnode.{name}" for name in gone]
        paths = [f"/api/v1/nodes/{node}" for node in nodes] + [f"{LEASES}/{node}" for node in nodes]
        paths += [f"/api/v1/namespaces/{SYSTEM}/configmaps/{name}-port-allocations" for name in gone]
        return [path for path in paths if cluster.get(path) is not None]

    until(lambda: not left(), 180, f"left behind: {left()}")  # a young garbage collector needs half a minute to begin


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"portRange": {"start": 3000, "end": 2000}}, "end is below start"),
        ({"stats": "Maybe"}, "spec.stats"),
        ({"capacity": {"labs": -1}}, "spec.capacity.labs"),
        ({"environment": "not legal!"}, "spec.environment"),
    ],
)
def test_spec_is_refused_by_the_api_server(cluster: Cluster, spec: dict[str, Any], message: str) -> None:
    with pytest.raises(SandboxError, match=message):
        cluster.apply(cmlworker("refused", "https://cml.invalid", **spec))
