"""One more simulated worker, of an environment of its own: it may be broken without harm to other tests."""

import asyncio
import datetime as dt
import subprocess
import sys
import threading
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from zlib import crc32

import vkprovider
from tests.support.cluster import Cluster, is_ready
from tests.support.simulator import Simulator
from tests.support.waiting import until
from vkpsandbox import Worker
from vkpsim.cml.server import CmlSimulator
from vkpsim.cml.simulation import Settings as CmlSettings
from vkpsim.http.tls import self_signed, server_context

SYSTEM = "vkprovider-system"
LOGINS = f"{SYSTEM}-logins"
T = TypeVar("T")
ACCOUNT = {"username": "vkprovider", "password": "extra-Pa55"}
CMLWORKERS = "/apis/vkprovider.io/v1alpha1/cmlworkers"


def secret(name: str, data: Mapping[str, str], *urls: str) -> dict[str, Any]:
    """Make a Secret in the namespace of logins: for workers at these URLs; without any, for devices."""
    meta = {
        "name": name,
        "namespace": LOGINS,
        "labels": {"vkprovider.io/used-for": "worker" if urls else "devices"},
        "annotations": {"vkprovider.io/host": ",".join(urls)} if urls else {},
    }
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": dict(data)}


def cmlworker(name: str, url: str, **spec: Any) -> dict[str, Any]:
    """Make a CMLWorker whose environment is its name; fields that are None are left out."""
    fields: dict[str, Any] = {
        "url": url,
        "address": own_address(name),
        "environment": name,
        "credentialsSecretName": name,
        "tls": {"insecureSkipVerify": True},
        "capacity": {"cpu": "16", "memory": "32Gi", "labs": 50, "labNodes": 100},
    }
    fields = {key: value for key, value in {**fields, **spec}.items() if value is not None}
    return {
        "apiVersion": "vkprovider.io/v1alpha1",
        "kind": "CMLWorker",
        "metadata": {"name": name},
        "spec": fields,
    }


def own_address(name: str) -> str:
    """Return an address that is hardly another worker's: of two at one address only one gives its ports."""
    number = crc32(name.encode()) % 2**16
    return f"198.18.{number >> 8}.{number & 255}"


def expired_certificate(host: str, days: int = 400) -> tuple[bytes, bytes]:
    """Make a certificate that has expired, and its key, PEM."""
    return self_signed(host, dt.datetime.now(dt.UTC) - dt.timedelta(days=days))


class Program:
    """`vkprovider sim cml` as a process of the test."""

    def __init__(self, *arguments: str, tls: bool = True) -> None:
        command = [sys.executable, "-m", "vkprovider", "sim", "cml", "--listen=127.0.0.1:0"]
        command += [f"--username={ACCOUNT['username']}", *(["--tls"] if tls else []), *arguments]
        home = str(Path(vkprovider.__file__).parents[1])
        environ = {"VKPROVIDER_SIM_PASSWORD": ACCOUNT["password"], "PYTHONPATH": home}
        self._process = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True)  # noqa: S603 (ours)
        assert self._process.stdout
        line = self._process.stdout.readline()
        self.url = line.split()[-1] if line else ""
        assert self.url.startswith("http"), line

    def close(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.communicate(timeout=10)


class Controllers:
    """Good simulators in a thread of this process, one for each name that is asked for; a CMLWorker needs its own."""

    def __init__(self) -> None:
        certificate, key = self_signed("127.0.0.1", dt.datetime.now(dt.UTC))
        self.certificate = certificate.decode()
        self._tls = server_context(certificate, key)
        self._running: dict[str, CmlSimulator] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="controllers")
        self._thread.start()

    def url(self, name: str) -> str:
        """Return the URL of the simulator of a name."""
        if name not in self._running:
            settings = CmlSettings(password=ACCOUNT["password"], username=ACCOUNT["username"])
            self._running[name] = self._run(CmlSimulator(settings, tls=self._tls).__aenter__())
        return self._running[name].url

    def close(self) -> None:
        """End them."""
        for simulator in self._running.values():
            self._run(simulator.__aexit__(None, None, None))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(30)


class Extra:
    """A CMLWorker with its Secret, and the simulator behind it."""

    def __init__(self, cluster: Cluster, name: str, url: str) -> None:
        self.cluster = cluster
        self.name = name
        self.url = url
        worker = Worker(name, url, own_address(name), ACCOUNT["username"], ACCOUNT["password"], 1, "")
        self.simulator = Simulator(worker)

    @property
    def path(self) -> str:
        """Of the CMLWorker."""
        return f"{CMLWORKERS}/{self.name}"

    @property
    def node(self) -> dict[str, Any] | None:
        """The Node."""
        return self.cluster.get(f"/api/v1/nodes/vnode.{self.name}")

    def wait_ready(self, within_s: float = 45) -> None:
        """Wait until CMLWorker and Node are Ready."""
        until(lambda: is_ready(self.cluster.get(self.path)), within_s, f"{self.name} is not Ready")
        until(lambda: is_ready(self.node), within_s, f"vnode.{self.name} is not Ready")

    def claims(self) -> str:
        """The text of the claims; empty if there are none."""
        path = f"/api/v1/namespaces/{SYSTEM}/configmaps/{self.name}-port-allocations"
        found = self.cluster.get(path)
        return "".join((found or {}).get("data", {}).values())

    def left_behind(self, pod_uids: Sequence[str] = ()) -> list[str]:
        """Name what is left of lablets: labs on the worker, rows in the claims."""
        labs = [lab["lab_title"] for lab in self.simulator.labs()]
        return labs + [f"claim of {uid}" for uid in pod_uids if uid in self.claims()]


@contextmanager
def extra_worker(cluster: Cluster, name: str, *arguments: str, **spec: Any) -> Iterator[Extra]:
    """Run one more simulator with its CMLWorker, and remove both.

    Args:
        cluster: The sandbox.
        name: Of the CMLWorker, its Secret and its environment.
        *arguments: Of `vkprovider sim cml`.
        **spec: Of the CMLWorker.
    """
    program = Program(*arguments)
    try:
        cluster.apply(secret(name, ACCOUNT, program.url), namespace=LOGINS)
        cluster.apply(cmlworker(name, program.url, **spec))
        try:
            yield Extra(cluster, name, program.url)
        finally:
            cluster.kubectl("delete", "cmlworker", name, "--ignore-not-found", "--timeout=30s")
            cluster.kubectl("delete", "secret", name, f"--namespace={LOGINS}", "--ignore-not-found")
            until(lambda: cluster.get(f"/api/v1/nodes/vnode.{name}") is None, 45, f"Node vnode.{name} stays")
    finally:
        program.close()
