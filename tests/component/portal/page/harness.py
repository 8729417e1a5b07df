"""The page of the portal in the test's own loop, on a real API server; the test writes what a lab goes through."""

import asyncio
import dataclasses
import itertools
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx
from httpx_sse import EventSource, ServerSentEvent

from tests.component.controllers.looking import when
from tests.component.portal.people import People
from tests.support.apiserver import MEMBERS, SYSTEM, Admin, ApiServer
from tests.support.faultyapi import FaultyApi
from tests.support.inloop import InLoop
from vkprovider.lablet import names
from vkprovider.platform import wellknown
from vkprovider.platform.http.page import Page
from vkprovider.platform.runtime.context import connect
from vkprovider.platform.runtime.membership import Membership
from vkprovider.platform.runtime.parts import Change, Part
from vkprovider.platform.runtime.process import Process
from vkprovider.platform.shipped import find_manifests
from vkprovider.platform.times import iso
from vkprovider.portal.api.routes import portal_api, portal_callers
from vkprovider.portal.api.streams import LabStreams, StreamTimes
from vkprovider.portal.process import PORTAL, page_of
from vkprovider.portal.pure import portalnames
from vkprovider.portal.pure.portalnames import namespace_of, pod_name, user_key
from vkprovider.portal.pure.record import Ending, LabOutcome, LabRequest, annotation, annotations_for, labels_for
from vkprovider.portal.service.choices import Choices, read_config
from vkprovider.portal.service.index import UserLabIndex
from vkprovider.portal.service.informers import OtherLablets, informers
from vkprovider.portal.service.learners import LabletLearners
from vkprovider.portal.service.leftwork import left_work
from vkprovider.portal.service.locks import Locks
from vkprovider.portal.service.making import lab_objects
from vkprovider.portal.service.requests import Requests
from vkprovider.portal.settings import PortalProcessSettings

SPAWNER: Final = "/nublado/spawner/v1"
PREFIX: Final = "nublado"
PROVIDER: Final = f"system:serviceaccount:{SYSTEM}:vkprovider"
PATIENCE_S: Final = 120.0
ACCOUNT: Final = "vkprovider-portal"
_runs = itertools.count(1)
Json = dict[str, Any]


@dataclasses.dataclass
class Running(InLoop):
    """A page that runs in this loop."""

    page: Page
    process: Process
    index: UserLabIndex
    streams: LabStreams

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.page.port}"

    async def close(self) -> None:
        """Close its connections."""
        await self.page.stop()
        await self.process.ctx.kube.close()


class PageWorld:
    """Accounts, and namespaces of user labs; all of it is gone after the test."""

    def __init__(self, server: ApiServer, admin: Admin, directory: Path, stack: AsyncExitStack) -> None:
        self.server = server
        self.admin = admin
        self.run = next(_runs)
        self.people = People(admin)
        self.person = self.people.person
        self.prefix = self.people.prefix
        self._directory = directory
        self._stack = stack
        self._replicas: list[Running] = []
        self._numbers = itertools.count(1)
        self._labs: set[str] = set()

    # ------------------------------------------------------------------------------------------ replicas

    async def replica(
        self,
        env: Mapping[str, str] | None = None,
        times: StreamTimes | None = None,
        *,
        late: tuple[str, asyncio.Event] | None = None,
    ) -> Running:
        """Start a page behind a proxy of its own, and wait until it is ready.

        Args:
            env: Settings.
            times: Those of streams; by default short ones.
            late: A pattern, and what the first request that matches waits for; the replica is returned before that.
        """
        api = await self._stack.enter_async_context(FaultyApi(self.server.url, self.server.client_tls()))
        if late is not None:
            pattern, over = late
            api.fault(pattern, first=lambda _: over.wait())
        name = f"portal-{self.run}-{next(self._numbers)}"
        given = {
            "LABLET_CONTROLLER_INSTANCE_ID": name,
            "KUBECONFIG": self.server.write_provider_kubeconfig(self._directory / name, api.url, ACCOUNT),
            "VKPROVIDER_HTTP_HOST": "127.0.0.1",
            "VKPROVIDER_HTTP_PORT": "0",
            "VKPROVIDER_PORTAL_USERNAME_PREFIX": self.prefix,
            **(env or {}),
        }
        settings = PortalProcessSettings.from_environment(given)
        page = page_of(settings)
        await page.start()
        ctx = await connect(settings.kube, settings.replica, page.wait_for, program=PORTAL)
        objects = informers(ctx, settings.portal.namespace_prefix)
        index = UserLabIndex(SYSTEM, settings.portal.starts_max, _nobody, age_s=objects.age_s)
        membership = Membership(ctx, settings.replica.lease_ttl_s)
        locks = Locks(ctx, membership, _nobody, index.about)
        learners = LabletLearners(OtherLablets(index.strays, index.stray_namespaces))
        choices = Choices(read_config(settings.portal.config), objects, learners)
        requests = Requests(ctx, lab_objects(ctx, objects), settings.portal, index, locks, membership, choices, _nobody)
        shown = portal_api(
            ctx,
            settings.portal,
            index,
            requests,
            choices,
            portal_callers(ctx, settings.portal, objects, settings.kube),
            left_work(settings.portal),
            times or StreamTimes(settle_s=0.3, review_s=2.0),
        )
        part = Part(
            informers=(*objects.all(), locks.leases),
            changes=(
                Change(objects.namespaces, index.namespace_changed),
                Change(objects.pods, index.pod_changed),
                Change(objects.events, index.event_changed),
                Change(objects.definitions, index.definition_changed),
                Change(locks.leases, locks.lease_changed),
            ),
            routes=shown.routes(),
            finish=shown.finish,
        )
        process = Process(ctx, membership, (part,))
        page.serve(process)
        stop = asyncio.Event()
        task = asyncio.create_task(process.run(stop), name=name)
        running = Running(api, stop, task, page, process, index, shown.streams)
        self._replicas.append(running)
        if late is None:
            await when(lambda: not process.unready(), f"{name} is ready")
        return running

    def user(self, name: str) -> str:
        """Return the name of a user of this test alone."""
        return f"{name}-{self.run}"

    # ------------------------------------------------------------------------------------------ labs

    async def lab(self, user: str, *, class_: str = "", ago_s: float = 0.0, **request: Any) -> LabRequest:
        """Make the record of a lab, as a request for it does."""
        asked = LabRequest(
            id=f"create-{next(self._numbers)}",
            at=int(time.time() - ago_s),
            definition="netlab:1.0",
            options={"image_tag": "1.0", "size": "small", "enable_debug": False, "reset_user_env": False},
            by=self.prefix + user,
            **request,
        )
        namespace = namespace_of(PREFIX, user)
        self._labs.add(namespace)
        labels = labels_for(SYSTEM, user, class_=class_)
        meta = {"name": namespace, "labels": labels, "annotations": annotations_for(user, asked)}
        await self.admin.create("/api/v1/namespaces", {"metadata": meta})
        return asked

    async def pod(self, user: str, request: LabRequest, *, end_in_s: int = 3600) -> str:
        """Make the Pod of a lab; return its path."""
        path = f"/api/v1/namespaces/{namespace_of(PREFIX, user)}/pods"
        name = pod_name(user_key(user))
        labels = {**labels_for(SYSTEM, user), portalnames.LABEL_REQUEST: request.id}
        body = {
            "metadata": {
                "name": name,
                "labels": labels,
                "annotations": {names.ANNOTATION_TIMESLOT_END: iso(int(time.time()) + end_in_s)},
            },
            "spec": {
                "containers": [{"name": "lab", "image": "netlab:1.0"}],
                "serviceAccountName": "default",
                "automountServiceAccountToken": False,
            },
        }
        account = f"/api/v1/namespaces/{namespace_of(PREFIX, user)}/serviceaccounts"
        await self.admin.create(account, {"metadata": {"name": "default"}})
        await self.admin.create(path, body)
        target = {"apiVersion": "v1", "kind": "Node", "name": "vnode.w1"}
        bound = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
        await self.admin.create(f"{path}/{name}/binding", bound)
        return f"{path}/{name}"

    async def condition(self, pod: str, kind: str, status: str = "True", **notes: str) -> None:
        """Write a condition, and annotations, of a Pod, as the provider does."""
        entry = {"type": kind, "status": status, "lastTransitionTime": iso(int(time.time()))}
        annotations = {f"{wellknown.GROUP}/{key.replace('_', '-')}": text for key, text in notes.items()}
        await self._report(pod, {"metadata": {"annotations": annotations}, "status": {"conditions": [entry]}})

    async def waiting(self, pod: str, reason: str, message: str = "") -> None:
        """Write the reason for which a Pod waits, as the provider does."""
        status = {
            "name": "lab",
            "image": "netlab:1.0",
            "imageID": "",
            "ready": False,
            "restartCount": 0,
            "state": {"waiting": {"reason": reason, "message": message}},
        }
        await self._report(pod, {"status": {"containerStatuses": [status]}})

    async def _report(self, pod: str, body: Json) -> None:
        how = "application/strategic-merge-patch+json"
        await self.admin.request("PATCH", f"{pod}/status", body, how, user=PROVIDER)

    async def event(self, pod: str, reason: str, message: str, *, type_: str = "Normal") -> None:
        """Make an Event about a Pod, as the provider does."""
        namespace, name = pod.split("/")[4], pod.rsplit("/", maxsplit=1)[-1]
        found = await self.admin.get(pod)
        assert found is not None
        body = {
            "metadata": {"name": f"{name}.{next(self._numbers)}", "namespace": namespace},
            "involvedObject": {
                "kind": "Pod",
                "apiVersion": "v1",
                "name": name,
                "namespace": namespace,
                "uid": found["metadata"]["uid"],
            },
            "type": type_,
            "reason": reason,
            "message": message,
            "count": 1,
            "firstTimestamp": iso(int(time.time())),
            "lastTimestamp": iso(int(time.time())),
            "source": {"component": "vkprovider"},
        }
        await self.admin.create(f"/api/v1/namespaces/{namespace}/events", body)

    async def note(self, user: str, part: LabRequest | Ending | LabOutcome) -> None:
        """Write a part of the record of a lab."""
        path = f"/api/v1/namespaces/{namespace_of(PREFIX, user)}"
        await self.admin.patch(path, {"metadata": {"annotations": annotation(part)}})

    async def over(self, user: str, request: LabRequest, phase: str = "complete", text: str = "") -> None:
        """Write that the creation of a lab has ended."""
        kind: Any = "create"
        ended: Any = phase
        await self.note(user, LabOutcome(id=request.id, kind=kind, phase=ended, at=int(time.time()), text=text))

    async def gone(self, user: str) -> None:
        """Delete the namespace of a lab, as the namespace controller does in the end."""
        await self._gone(namespace_of(PREFIX, user))

    async def _gone(self, namespace: str) -> None:
        path = f"/api/v1/namespaces/{namespace}"
        await self.admin.delete(f"{path}/pods", grace_s=0)
        await self.admin.delete(f"{path}/events")
        await self.admin.delete(path)
        found = await self.admin.get(path)
        if found is not None:
            await self.admin.replace(f"{path}/finalize", {**found, "spec": {"finalizers": []}})
        await self.admin.until_gone(path)

    async def close(self) -> None:
        """End what runs, and delete what was made."""
        for running in self._replicas:
            if not running.task.done():
                await running.crash()
        for namespace in self._labs:
            if await self.admin.get(f"/api/v1/namespaces/{namespace}") is not None:
                await self._gone(namespace)
        await self.people.close()
        await self.admin.delete(MEMBERS)


def _nobody(_: str) -> None:
    """Wake nobody: the test does what a lab needs."""


class Listener:
    """A client of a stream: the decoder is that of httpx-sse, as Nublado's spawner uses it."""

    def __init__(self, answer: httpx.Response, began: float) -> None:
        self.answer = answer
        self._began = began
        self._events = EventSource(answer).aiter_sse()

    async def next(self) -> ServerSentEvent:
        """Return the next event.

        Raises:
            StopAsyncIteration: The stream has ended.
        """
        async with asyncio.timeout(PATIENCE_S):
            return await anext(self._events)

    async def until(self, kind: str, text: str = "") -> ServerSentEvent:
        """Read up to an event of a kind that has a text."""
        while True:
            found = await self.next()
            if found.event == kind and text in found.data:
                return found

    async def rest(self) -> list[ServerSentEvent]:
        """Return what follows until the stream ends."""
        found = []
        while True:
            try:
                found.append(await self.next())
            except StopAsyncIteration:
                return found


@asynccontextmanager
async def listening(
    url: str, user: str, headers: Mapping[str, str], last_id: str = "", status: int = 200
) -> AsyncIterator[Listener]:
    """Follow the events of a user's lab."""
    more = {"Last-Event-ID": last_id} if last_id else {}
    async with (
        httpx.AsyncClient(timeout=60) as http,
        http.stream("GET", f"{url}{SPAWNER}/labs/{user}/events", headers={**headers, **more}) as answer,
    ):
        assert answer.status_code == status, await answer.aread()
        yield Listener(answer, time.monotonic())


@asynccontextmanager
async def open_world(server: ApiServer, directory: Path) -> AsyncIterator[PageWorld]:
    """Make a world for one test."""
    async with Admin(server) as admin, AsyncExitStack() as stack:
        world = PageWorld(server, admin, directory, stack)
        await world.people.open()
        try:
            yield world
        finally:
            await world.close()


def install(server: ApiServer) -> None:
    """Apply the manifests of the portal; without controllers its Deployment has no Pods."""
    server.kubectl("apply", "--server-side", "-k", str(find_manifests() / "components" / "portal"))
