"""Calls of the Lab Delivery System and the grader for lablets: create a session, set its devices, archive it, grade.

The stages of a lablet decide what is called next; every call may be repeated. The claim names deployment and client key
before a session is requested, so that a crash leaves no session that no claim names.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from vkprovider.lablet import names
from vkprovider.lablet.archives import Leftovers, Verdict
from vkprovider.lablet.inputs import Inputs
from vkprovider.lablet.reasons import Happened, Trouble
from vkprovider.labs.controllers.secrets import read_device_secret
from vkprovider.labs.controllers.session.inbox import Inbox
from vkprovider.labs.controllers.session.strays import StraySessions, live_sessions
from vkprovider.labs.controllers.worker.worker import Worker
from vkprovider.labs.lds.deployments import Deployments
from vkprovider.labs.lds.dialect import Lacking
from vkprovider.labs.lds.grader import Grader, Grading
from vkprovider.labs.lds.spi import LabDelivery
from vkprovider.labs.lds.wire import ResponseData
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.definition.content import Content
from vkprovider.labs.pure.lablet.intent import Definition
from vkprovider.labs.pure.lablet.outcomes import Rescheduled
from vkprovider.labs.pure.session.delivery import NO_DELIVERY, NO_TERMS, Delivery, Session, Terms
from vkprovider.labs.pure.topology.devices import DeviceAccessInfo, devices_for
from vkprovider.labs.settings.services import LdsSettings
from vkprovider.platform.errors import Conflict, InputError, Invalid, NotFound, OutsideError
from vkprovider.platform.messages import Fault
from vkprovider.platform.runtime.context import Context
from vkprovider.platform.times import iso


@dataclass(frozen=True, slots=True)
class Sessions:
    """The sessions of this replica's lablets; without deployments there are none, and no lablet waits for one.

    Attributes:
        deployments: The deployments of the LDS; None if none is configured.
        strays: Counts the sessions of other replicas; None without deployments.
        grader: None if none is configured.
        definitions: By name.
        contents: By digest.
        workers: Of this replica, by name.
        worker_secrets: Returns the names of the Secrets that CMLWorkers name; no learner sees what they hold.
        inbox: The stored session events.
        settings: How long a timeslot is, and which accesses a session receives.
    """

    ctx: Context
    deployments: Deployments | None
    strays: StraySessions | None
    grader: Grader | None
    definitions: Mapping[str, Definition]
    contents: Mapping[str, Content]
    workers: Mapping[str, Worker]
    worker_secrets: Callable[[], Collection[str]]
    inbox: Inbox
    settings: LdsSettings

    # --------------------------------------------------------------------------------------------- facts

    def delivery(self, claim: Claim, inputs: Inputs, *, archive_failed: bool) -> Delivery:
        """Return the state of a lablet's delivery by the LDS."""
        terms, known = self._terms(claim), claim.definition in self.definitions
        session, grades = claim.session, self.grader is not None
        if self.deployments is None or (session is None and not (known and terms.enabled)):
            return Delivery(grader=True) if grades else NO_DELIVERY
        if session is None:
            if not (claim.bound_to or inputs.username):
                return Delivery(wanted=True, grader=grades)
            try:
                choice = self.deployments.choose(self._load(), affinity=terms.affinity)
            except InputError as refusal:
                return Delivery(wanted=True, refusal=refusal.fault, grader=grades)
            except OutsideError as error:
                return Delivery(wanted=True, refusal=Fault(Trouble.LDS_UNAVAILABLE, error.message), grader=grades)
            return Delivery(
                wanted=True,
                deployment=choice.deployment.id,
                warning=choice.warning,
                slot_s=int(self.settings.timeslot_s),
                grader=grades,
            )
        said = self.inbox.of(session.id, session.deployment)
        return Delivery(
            wanted=True,
            started_at=said.started,
            ended_at=said.ended,
            grader=grades,
            archive_failed=archive_failed,
        )

    def took(self, claim: Claim, session: Session, delivery: Delivery) -> None:
        """Record that a claim now names a session of the deployment that was chosen."""
        if self.deployments is not None:
            affinity = self._terms(claim).affinity
            self.deployments.took(session.deployment, affinity=affinity, warning=delivery.warning)

    def _terms(self, claim: Claim) -> Terms:
        definition = self.definitions.get(claim.definition)
        return definition.terms if definition is not None else NO_TERMS

    def _load(self) -> Counter[str]:
        """Count live sessions by deployment: this replica's by its claims, others' as the LDS last listed them."""
        own = Counter(session.deployment for session in live_sessions(self.workers))
        return own + self.strays.elsewhere if self.strays is not None else own

    # --------------------------------------------------------------------------------------------- steps

    async def provision(
        self, worker: Worker, claim: Claim, session: Session, content: Content, via: Mapping[str, tuple[str, int]]
    ) -> Session:
        """Create the session, unless it has an id, and set its devices; the claim records the id before the devices.

        Slots in `via` are reached by that address and port, all others by the worker's.

        The order is: create, set devices, then get the session if the answer to its creation had no login URL.

        Raises:
            InputError: `LDSDeploymentUnknown`, or the devices' Secret is wrong.
            OutsideError: The LDS refused, failed or did not answer.
        """
        terms, client = self._terms(claim), self._client(session, worker)
        if not session.id:
            session = await self._create(client, worker, claim, session, terms)
        await client.set_devices(session.id, await self._devices(worker, claim, content, terms, via))
        if not session.login_url:
            url = (await client.get_session_info(session.id)).public_login_url
            session = msgspec.structs.replace(session, login_url=url or "")
        return msgspec.structs.replace(session, ready_at=self.ctx.now_unix)

    async def _create(
        self, client: LabDelivery, worker: Worker, claim: Claim, session: Session, terms: Terms
    ) -> Session:
        info = await client.create_session_with_part(
            session.username,
            datetime.fromtimestamp(session.slot_start, UTC),
            datetime.fromtimestamp(session.slot_end, UTC),
            terms.form,
            client_key=session.key,
            owner=names.mark(self.ctx.installation),
        )
        if info.username != session.username:
            raise Invalid(f"LDS {session.deployment}: session {info.id} is another user's, not {session.username}'s")
        now = self.ctx.now_unix  # of a session that is there, the claim may be lost that named login and end
        made = msgspec.structs.replace(
            session,
            id=info.id,
            base_url=self._base_url(session.deployment),
            login_url=info.public_login_url or "",
            started_at=session.started_at or (now if info.begun else 0),
            ended_at=session.ended_at or (now if info.finished else 0),
        )
        self._save(worker, claim, made)
        return made

    def _save(self, worker: Worker, claim: Claim, session: Session) -> None:
        current = worker.claims.claims.get(claim.pod_uid)
        if current is not None:
            worker.claims.put(current.with_session(session))

    def _base_url(self, deployment: str) -> str:
        configured = self.deployments.deployments if self.deployments is not None else ()
        return next((each.base_url for each in configured if each.id == deployment), "")

    def _client(self, session: Session, worker: Worker) -> LabDelivery:
        if self.deployments is None:
            raise InputError(
                Trouble.LDS_DEPLOYMENT_UNKNOWN,
                f"the session is at LDS deployment {session.deployment}, and none is configured: set LDS_API_URL or "
                "LDS_DEPLOYMENTS_CONFIG until it has ended",
            )
        return self.deployments.client(session.deployment).guarded(worker.guard)

    async def _devices(
        self, worker: Worker, claim: Claim, content: Content, terms: Terms, via: Mapping[str, tuple[str, int]]
    ) -> list[DeviceAccessInfo]:
        secret = {}
        if terms.device_secret:
            secret = await read_device_secret(self.ctx, terms.device_secret, self.worker_secrets())
        host, every = worker.address, self.settings.every_access
        return devices_for(content.topology, claim.ports, host, secret, via=via, every_access=every)

    async def reschedule(self, worker: Worker, session: Session, slot_end: int) -> Rescheduled:
        """Ask the LDS for another end of a session; a failure is part of the outcome, because it stops nothing else."""
        slot = datetime.fromtimestamp(session.slot_start, UTC), datetime.fromtimestamp(slot_end, UTC)
        kept = f"the session of {session.username} keeps its end at {iso(session.slot_end)}"
        try:
            await self._client(session, worker).set_timeslot(session.id, *slot)
        except (Conflict, Invalid, NotFound) as error:
            return Rescheduled(Fault(Happened.TIMESLOT_NOT_CHANGED, f"{kept}: {error.message}"))
        except InputError as error:
            return Rescheduled(error.fault, final=False)
        except OutsideError as error:
            return Rescheduled(Fault(Happened.TIMESLOT_NOT_CHANGED, f"{kept} for now: {error.message}"), final=False)
        return Rescheduled()

    async def archive(self, worker: Worker, session: Session) -> str:
        """Archive a session; one that was never created counts as archived.

        Returns:
            Why it cannot be archived at all, so that the end does not wait for ever; "" if it is archived.

        Raises:
            OutsideError: The LDS refused, failed or did not answer.
        """
        try:
            client = self._client(session, worker)
        except InputError as error:
            return error.message
        if session.id:
            await client.archive_session(session.id)
            return ""
        try:
            made = await client.list_sessions(owner=names.mark(self.ctx.installation), client_key=session.key)
        except Lacking:
            return ""  # if it was created, its first event names it: see `strays`
        for info in made:
            await client.archive_session(info.id)
        return ""

    async def responses(self, worker: Worker, claim: Claim) -> list[Any] | None:
        """Collect what the learner answered; None without a session.

        Raises:
            OutsideError: The LDS refused, failed or did not answer.
        """
        session = claim.session
        if session is None or not session.id or self.deployments is None:
            return None
        try:
            data: ResponseData = await self._client(session, worker).collect_responses(session.id)
        except (NotFound, InputError):
            return None
        answered: list[Any] = msgspec.to_builtins(data.responses)
        return answered

    async def grade(self, claim: Claim, left: Leftovers | None) -> Verdict:
        """Ask the grader for a verdict on what was collected.

        Raises:
            OutsideError: The grader refuses, fails or does not answer.
        """
        assert self.grader is not None  # noqa: S101 (decided from it)
        session, content = claim.session, self.contents.get(claim.digest)
        about = None
        if session is not None and session.id:
            form = self._terms(claim).form or claim.definition
            about = {"id": session.id, "username": session.username, "form_qualified_name": form}
        return await self.grader.grade(
            Grading(
                grading_id=f"{claim.pod_uid}.{max(1, claim.sessions)}.{claim.collected_at}",
                lablet={
                    "uid": claim.pod_uid,
                    "name": claim.pod,
                    "namespace": claim.namespace,
                    "definition": claim.definition,
                    "content_version": claim.version,
                },
                configurations=left.configs if left is not None else {},
                session=about,
                failures=left.faults if left is not None else {},
                responses=list(left.responses or []) if left is not None else [],
                grading=content.files.get("grade.xml") if content is not None else None,
            )
        )

    async def login_url(self, session: Session, session_id: str) -> str:
        """Return the whole login URL of a session; it is a secret.

        Args:
            session: As a claim names it.
            session_id: Its id. Where the claim does not know it yet a Pod reports it, whose annotations others may
                have written: then the session must be the learner's.

        Raises:
            InputError: `LDSDeploymentUnknown`.
            NotFound: The session is not that of the claim.
            OutsideError: The LDS refused, failed or did not answer.
        """
        if self.deployments is None:
            raise InputError(Trouble.LDS_DEPLOYMENT_UNKNOWN, "no Lab Delivery System is configured")
        client = self.deployments.client(session.deployment)
        if session_id != session.id:
            info = await client.get_session_info(session_id)
            if info.username != session.username or (info.client_key or session.key) != session.key:
                raise NotFound(f"session {session_id} is not that of {session.username}")
        return await client.get_login_url(session_id)
