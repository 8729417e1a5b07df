"""Whole replicas in the test's own loop, on a real API server, with null workers or simulators in the same loop.

A test acts as users and admins do, and looks at what everyone can see: objects in the API server, the access log of a
simulator, the requests that passed the proxy. Without a scheduler it sets `spec.nodeName` itself.
"""

import asyncio
import contextlib
import dataclasses
import itertools
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from tests.support import apiserver as real
from tests.support import topologies
from tests.support.apiserver import CONFIG_MAPS, GROUP, NODE_LEASES, NODES, RUNTIME_CLASSES, SECRETS, Admin, until
from tests.support.cmlapi.simulator import CmlSimulator
from tests.support.faultyapi import FaultyApi
from vkprovider.app.main import connect
from vkprovider.app.run import Replica
from vkprovider.app.settings import Settings
from vkprovider.controllers.context import Context
from vkprovider.lds.config import takes_part
from vkprovider.lds.deployments import Deployments
from vkprovider.lds.grader import HttpGrader
from vkpsandbox.cml.simulation import Settings as CmlSettings
from vkpsandbox.http.access_log import Entry

T = TypeVar("T")
PASSWORD: Final = "labs-password"
Groups = Mapping[str, Mapping[str, object]]
"""Fields of groups of settings, by group."""
SHORT: Final[Groups] = {
    "workers": {
        "probe_s": 0.4,
        "refresh_probes": 1,
        "transition_s": 0.1,
        "reconcile_s": 2.0,
        "write_retry_first_s": 0.1,
        "write_retry_cap_s": 0.5,
        "internal_ip": "192.0.2.9",
    },
    "lablets": {
        "transition_s": 0.1,
        "progress_after_s": 0.3,
        "progress_every_s": 1.0,
        "step_retry_first_s": 0.1,
        "step_retry_cap_s": 0.5,
    },
}
"""Short intervals; everything else as it is shipped."""
MORTAL: Final[Groups] = {**SHORT, "replica": {"lease_ttl_s": 6.0}}
"""For replicas whose loss others notice: after 4 s instead of 10."""
_runs = itertools.count(1)


@dataclass
class Running:
    """A replica that runs in this loop."""

    replica: Replica
    api: FaultyApi
    stop_event: asyncio.Event
    task: asyncio.Task[None]
    deployments: Deployments | None = None
    grader: HttpGrader | None = None

    @property
    def name(self) -> str:
        """Its identity, as Leases show it."""
        return self.replica.ctx.replica

    @property
    def ctx(self) -> Context:
        """Its context."""
        return self.replica.ctx

    async def stop(self) -> None:
        """End it as SIGTERM does: it hands its nodes over."""
        self.stop_event.set()
        await self.task
        await self._close()

    async def crash(self) -> None:
        """End it as SIGKILL does, as far as others can see: nothing that it still says reaches the API server."""
        self.api.cut()
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        await self._close()

    async def _close(self) -> None:
        await self.ctx.kube.close()
        if self.deployments is not None:
            await self.deployments.close()
        if self.grader is not None:
            await self.grader.close()


class World:
    """One installation: a namespace for Pods, workers, definitions, replicas. All of it is gone after the test.

    Attributes:
        ahead_s: By how much the wall clocks of all replicas are ahead.
    """

    def __init__(self, server: real.ApiServer, admin: Admin, directory: Path, stack: AsyncExitStack) -> None:
        self.server = server
        self.admin = admin
        self.run = next(_runs)
        self.namespace = f"team-{self.run}"
        self.ahead_s = 0.0
        self._directory = directory
        self.stack = stack
        self._names = itertools.count(1)
        self._replicas: list[Running] = []

    def name(self, stem: str) -> str:
        """Return a name that no other test has."""
        return f"{stem}-{self.run}-{next(self._names)}"

    # -------------------------------------------------------------------------------------- replicas

    async def replica(self, intervals: Groups = SHORT, *, name: str = "", **env: str) -> Running:
        """Start a replica behind a proxy of its own, with the provider's ServiceAccount.

        Args:
            intervals: Settings that are shorter than they are shipped; `env` does not change them.
            name: Its identity; unique by default.
            env: Settings, as environment variables.
        """
        api = await self.stack.enter_async_context(FaultyApi(self.server.url, self.server.client_tls()))
        name = name or self.name("replica")
        kubeconfig = self.server.write_provider_kubeconfig(self._directory / f"{name}-{len(self._replicas)}", api.url)
        given = Settings.from_environment({"LABLET_CONTROLLER_INSTANCE_ID": name, "KUBECONFIG": kubeconfig, **env})
        groups = {group: getattr(given, group).model_copy(update=fields) for group, fields in intervals.items()}
        settings = given.model_copy(update=groups)
        ctx = dataclasses.replace(
            await connect(settings),
            wall=lambda: time.time() + self.ahead_s,
            process=f"host-{self.run}-{len(self._replicas)}-1-abcd",
        )
        deployments = Deployments(settings.lds, user_agent=name) if takes_part(settings.lds) else None
        grader = HttpGrader(settings.grader, user_agent=name) if settings.grader.url else None
        replica = Replica(ctx, settings, deployments=deployments, grader=grader)
        stop = asyncio.Event()
        task = asyncio.create_task(replica.run(stop), name=name)
        running = Running(replica, api, stop, task, deployments, grader)
        self._replicas.append(running)
        return running

    async def close(self) -> None:
        """End what runs."""
        for running in self._replicas:
            if not running.task.done():
                await running.crash()

    # -------------------------------------------------------------------------------------- workers

    async def simulator(self, **settings: Any) -> CmlSimulator:
        """Start a CML simulator whose devices boot at once; see `Settings` of the simulator for the arguments."""
        settings = {"boot_seconds": (0.0, 0.0), **settings}
        return await self.stack.enter_async_context(CmlSimulator(CmlSettings(password=PASSWORD, **settings)))

    async def worker(self, url: str = "", *, ready: bool = True, **spec: Any) -> str:
        """Create a CMLWorker with its Secret and, if wanted, wait for its Node; without a URL it is a null worker."""
        name = self.name("w")
        credentials = {"username": "admin", "password": PASSWORD}
        labels, annotations = {"vkprovider.io/used-for": "worker"}, {"vkprovider.io/host": url}
        meta = {"name": name, "namespace": real.SYSTEM, "labels": labels, "annotations": annotations}
        await self.admin.create(SECRETS, {"metadata": meta, "stringData": credentials})
        defaults = {
            "url": url or f"null://{name}",
            "address": "198.51.100.7",
            "credentialsSecretName": name,
            "capacity": {"cpu": "64", "memory": "256Gi", "labs": 200, "labNodes": 400},
            "portRange": {"start": 2000, "end": 2999},
        }
        await self.admin.create(
            f"{GROUP}/cmlworkers",
            {
                "apiVersion": "vkprovider.io/v1alpha1",
                "kind": "CMLWorker",
                "metadata": {"name": name},
                "spec": {**defaults, **spec},
            },
        )
        if ready:
            await self.node(name, is_ready)
        return name

    async def node(self, worker: str, good: Callable[[dict[str, Any]], object] = bool) -> dict[str, Any]:
        """Wait until the Node of a worker satisfies a condition."""
        return await self.admin.until(f"{NODES}/vnode.{worker}", good)

    async def cmlworker(self, worker: str, good: Callable[[dict[str, Any]], object] = bool) -> dict[str, Any]:
        """Wait until a CMLWorker satisfies a condition."""
        return await self.admin.until(f"{GROUP}/cmlworkers/{worker}", good)

    async def lease(self, worker: str, good: Callable[[dict[str, Any]], object] = bool) -> dict[str, Any]:
        """Wait until the Lease of a worker's Node satisfies a condition, and return its spec."""
        found = await self.admin.until(f"{NODE_LEASES}/vnode.{worker}", lambda lease: good(lease["spec"]))
        spec: dict[str, Any] = found["spec"]
        return spec

    # -------------------------------------------------------------------------------------- definitions

    async def define(self, inline: str | None = None, *, ready: bool = True, name: str = "", **spec: Any) -> str:
        """Create a LabletDefinition and, if wanted, wait for its RuntimeClass; without a topology: one host `h0`."""
        name = name or self.name("lab")
        await self.admin.create(f"{GROUP}/labletdefinitions", topologies.definition(name, inline, **spec))
        if ready:
            await self.admin.until(f"{RUNTIME_CLASSES}/{name}", bool)
            await self.definition(name, lambda found: condition(found, "Ready")["status"] == "True")
        return name

    async def definition(self, name: str, good: Callable[[dict[str, Any]], object] = bool) -> dict[str, Any]:
        """Wait until a LabletDefinition satisfies a condition, of its latest generation."""

        def seen(found: dict[str, Any]) -> object:
            is_new = found.get("status", {}).get("observedGeneration") == found["metadata"]["generation"]
            return is_new and good(found)

        return await self.admin.until(f"{GROUP}/labletdefinitions/{name}", seen)

    async def change_definition(self, name: str, **spec: Any) -> None:
        """Merge fields into the spec of a LabletDefinition."""
        await self.admin.patch(f"{GROUP}/labletdefinitions/{name}", {"spec": spec})

    # -------------------------------------------------------------------------------------- lablets

    async def pod(
        self,
        definition: str,
        worker: str,
        *,
        annotations: dict[str, str] | None = None,
        labels: dict[str, str] | None = None,
        **more: Any,
    ) -> "Lablet":
        """Create a Pod on the Node of a worker; further arguments as in `topologies.pod`."""
        name = self.name("p")
        body = topologies.pod(name, definition, **more)
        body["spec"]["nodeName"] = f"vnode.{worker}"
        body["metadata"]["annotations"] = annotations or {}
        body["metadata"]["labels"].update(labels or {})
        pods = f"/api/v1/namespaces/{self.namespace}/pods"
        if not body["spec"].get("runtimeClassName"):  # it may not ask for the Node itself: bound as the scheduler binds
            del body["spec"]["nodeName"]
            made = await self.admin.create(pods, body)
            target = {"apiVersion": "v1", "kind": "Node", "name": f"vnode.{worker}"}
            await self.admin.create(f"{pods}/{name}/binding", {"metadata": {"name": name}, "target": target})
        else:
            made = await self.admin.create(pods, body)
        return Lablet(self, worker, name, made["metadata"]["uid"])

    async def claims(self, worker: str) -> dict[str, dict[str, Any]]:
        """Return the rows of a worker's claims ConfigMap, by Pod UID."""
        found = await self.admin.get(f"{CONFIG_MAPS}/{worker}-port-allocations")
        return rows_of(found)

    async def ports(self, worker: str) -> dict[str, dict[str, int]]:
        """Return the outside ports of a worker's lablets, by the name of the Pod and of the slot."""
        found = await self.admin.get(f"{CONFIG_MAPS}/{worker}-port-allocations")
        document = json.loads(found["data"]["allocations.json"]) if found is not None else {}
        ports: dict[str, dict[str, int]] = {}
        for row in document.get("portClaims", []):
            ports.setdefault(row["service"], {})[row["portName"]] = row["port"]
        return ports

    async def events(self, reason: str, about: str = "") -> list[dict[str, Any]]:
        """List Events with a reason, in all namespaces; those of a Node or custom resource stand in `default`."""
        selector = f"reason={reason}" + (f",involvedObject.name={about}" if about else "")
        return await self.admin.items(f"/api/v1/events?fieldSelector={selector}")

    async def until_event(self, reason: str, about: str = "") -> dict[str, Any]:
        """Wait for an Event with a reason and return it."""
        return (await eventually(lambda: self.events(reason, about), f"Event {reason} about {about or 'anything'}"))[0]


@dataclass(frozen=True)
class Lablet:
    """One Pod."""

    world: World
    worker: str
    name: str
    uid: str

    @property
    def path(self) -> str:
        """Its path."""
        return f"/api/v1/namespaces/{self.world.namespace}/pods/{self.name}"

    async def until(self, good: Callable[[dict[str, Any]], object], what: str = "") -> dict[str, Any]:
        """Wait until the Pod satisfies a condition."""
        return await self.world.admin.until(self.path, good, what)

    async def ready(self) -> dict[str, Any]:
        """Wait until it is Ready."""
        return await self.until(is_ready, "not Ready")

    async def waits(self, reason: str) -> dict[str, Any]:
        """Wait until its container `lab` waits for a reason; return what it says."""
        found = await self.until(lambda pod: waiting(pod).get("reason") == reason, f"not waiting: {reason}")
        return waiting(found)

    async def annotate(self, **annotations: str | None) -> None:
        """Set annotations of our group: `username="alice"`; `_` stands for `-`."""
        values = {f"vkprovider.io/{name.replace('_', '-')}": value for name, value in annotations.items()}
        await self.world.admin.patch(self.path, {"metadata": {"annotations": values}})

    async def delete(self, *, grace_s: int | None = None) -> None:
        """Delete the Pod; with 0 at once, as `kubectl delete --force` does."""
        await self.world.admin.delete(self.path, grace_s=grace_s)

    async def gone(self) -> None:
        """Wait until the Pod does not exist; its row may stay ten seconds longer."""
        await self.world.admin.until_gone(self.path)

    async def claim(self, good: Callable[[dict[str, Any]], object] = bool) -> dict[str, Any]:
        """Wait until its row in the API server satisfies a condition."""

        async def look() -> dict[str, Any] | None:
            row = (await self.world.claims(self.worker)).get(self.uid)
            return row if row is not None and good(row) else None

        found = await eventually(look, f"claim of {self.name}")
        assert found is not None
        return found

    async def unclaimed(self) -> None:
        """Wait until no row names it."""

        async def look() -> bool:
            return self.uid not in await self.world.claims(self.worker)

        await eventually(look, f"no claim of {self.name}")


@contextlib.asynccontextmanager
async def open_world(server: real.ApiServer, directory: Path) -> AsyncIterator[World]:
    """Make a world for one test."""
    async with Admin(server) as admin, AsyncExitStack() as stack:
        world = World(server, admin, directory, stack)
        await admin.create("/api/v1/namespaces", {"metadata": {"name": world.namespace}})
        account = {"metadata": {"name": "default"}}
        await admin.create(f"/api/v1/namespaces/{world.namespace}/serviceaccounts", account)
        try:
            yield world
        finally:
            await world.close()
            await admin.wipe(world.namespace)


async def eventually(look: Callable[[], Awaitable[T]], what: str) -> T:
    """Return the first truthy answer; say what did not happen otherwise."""
    try:
        return await until(look)
    except TimeoutError:
        raise AssertionError(f"not in time: {what}") from None


async def when(predicate: Callable[[], T], what: str) -> T:
    """Return the first truthy answer of a plain function."""

    async def look() -> T:
        return predicate()

    return await eventually(look, what)


def rows_of(config_map: dict[str, Any] | None) -> dict[str, dict[str, Any]]:
    """Return the rows of a claims ConfigMap, by Pod UID."""
    if config_map is None:
        return {}
    document = json.loads(config_map["data"]["allocations.json"])
    return {row["podUID"]: row for row in document["lablets"]}


def condition(item: dict[str, Any], kind: str) -> dict[str, Any]:
    """Return a condition of an object; without one its status is empty."""
    found = item.get("status", {}).get("conditions", [])
    return next((entry for entry in found if entry["type"] == kind), {"status": "", "reason": "", "message": ""})


def is_ready(item: dict[str, Any]) -> bool:
    """Return whether a Node or a Pod is Ready."""
    return bool(condition(item, "Ready")["status"] == "True")


def waiting(pod: dict[str, Any], container: str = "lab") -> dict[str, Any]:
    """Return why a container waits; empty if it does not."""
    statuses = pod.get("status", {}).get("containerStatuses", [])
    found: dict[str, Any] = next((s["state"].get("waiting", {}) for s in statuses if s["name"] == container), {})
    return found


def requests(simulator: CmlSimulator, method: str, ending: str) -> list[Entry]:
    """Return the requests that a simulator answered with success, by method and the end of the path."""
    return [
        entry
        for entry in simulator.log.entries
        if entry.method == method and entry.path.endswith(ending) and entry.status < 300
    ]


def imports(simulator: CmlSimulator) -> list[Entry]:
    """Return the imports that a simulator carried out."""
    return [entry for entry in simulator.log.entries if entry.lab]


def labs(simulator: CmlSimulator) -> dict[str, str]:
    """Return the state of every lab of a simulator, by title."""
    return {lab.title: str(lab.state) for lab in simulator.simulation.world.labs.values()}
