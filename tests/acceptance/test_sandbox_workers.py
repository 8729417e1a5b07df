"""A sandbox with simulated workers and no provider: what the provider will find."""

import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from vkpsandbox import Sandbox, Worker
from vkpsandbox.processes.strays import marked

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    directory = tmp_path_factory.mktemp("sandbox")
    made = Sandbox.up(
        "workers",
        directory=directory,
        provider=False,
        controllers=False,
        worker_args=[["--version=2.9.1+build.7"], ["--version=2.8.0+build.6"]],
        worker_spec={"stats": "On"},
        tied=True,
    )
    with made:
        yield made
    assert marked(directory) == []


def login(worker: Worker, password: str) -> int:
    body = json.dumps({"username": worker.username, "password": password}).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{worker.url}/api/v0/authenticate", data=body, headers=headers)  # noqa: S310 (https)
    context = ssl._create_unverified_context()  # noqa: S323 (self-signed, on loopback)
    opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context))
    try:
        with opener.open(request, timeout=5) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def listed(sandbox: Sandbox, *what: str) -> list[dict[str, dict[str, object]]]:
    items: list[dict[str, dict[str, object]]] = json.loads(sandbox.kubectl("get", *what, "-o", "json").stdout)["items"]
    return items


def test_workers_answer_their_own_password_only(sandbox: Sandbox) -> None:
    first, second = sandbox.workers
    assert login(first, first.password) == 200
    assert login(first, second.password) == 403
    assert login(second, second.password) == 200


def test_workers_have_addresses_of_their_own(sandbox: Sandbox) -> None:
    assert len({worker.url.split(":")[1] for worker in sandbox.workers}) == 2
    assert [worker.address for worker in sandbox.workers] == ["198.51.100.1", "198.51.100.2"]


def test_cluster_knows_the_workers(sandbox: Sandbox) -> None:
    specs = [item["spec"] for item in listed(sandbox, "cmlworkers")]
    assert [spec["url"] for spec in specs] == [worker.url for worker in sandbox.workers]
    assert [spec["stats"] for spec in specs] == ["On", "On"]
    secrets = listed(sandbox, "secrets", "-n", "vkprovider-system-logins", "-l", "vkprovider.io/used-for=worker")
    assert [item["metadata"]["name"] for item in secrets] == [spec["credentialsSecretName"] for spec in specs]


def test_provider_has_the_rights_of_its_service_account_and_no_more(sandbox: Sandbox) -> None:
    provider = f"--kubeconfig={sandbox.provider_kubeconfig}"
    who = json.loads(sandbox.kubectl("auth", "whoami", "-o", "json", provider).stdout)
    assert who["status"]["userInfo"]["username"] == "system:serviceaccount:vkprovider-system:vkprovider"
    assert sandbox.kubectl("auth", "can-i", "list", "cmlworkers", provider).stdout.strip() == "yes"
    refused = sandbox.kubectl("auth", "can-i", "create", "clusterrolebindings", provider, check=False)
    assert refused.stdout.strip() == "no"


def test_password_is_no_argument(sandbox: Sandbox) -> None:
    for worker in sandbox.workers:
        arguments = Path(f"/proc/{sandbox.process(worker.process).pid}/cmdline").read_bytes()
        assert worker.password.encode() not in arguments


def test_killed_worker_stays_down_until_started(sandbox: Sandbox) -> None:
    worker = sandbox.workers[0]
    assert sandbox.kill(worker.process).state == "stopped"
    with pytest.raises(OSError, match="refused"):
        login(worker, worker.password)
    sandbox.start(worker.process)
    deadline = time.monotonic() + 20
    while True:
        try:
            assert login(worker, worker.password) == 200
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        else:
            break
    assert sandbox.process(worker.process).restarts == 0


def test_every_request_is_in_the_access_log(sandbox: Sandbox) -> None:
    worker = sandbox.workers[1]
    before = len(Path(worker.access_log).read_text().splitlines())
    login(worker, worker.password)
    deadline = time.monotonic() + 5
    while len(Path(worker.access_log).read_text().splitlines()) <= before:
        assert time.monotonic() < deadline
        time.sleep(0.05)
