"""Sessions of the Lab Delivery System: made, provisioned with devices, collected from, archived.

What is to be done next is decided in `domain.session`; here it is done, each call such that it may be repeated. The row
names deployment and client key before a session is asked for, so that a crash leaves none behind that nobody knows.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
import structlog

from vkprovider.api import names
from vkprovider.api.errors import InputError, NotFound, OutsideError
from vkprovider.api.messages import Fault
from vkprovider.api.reasons import Trouble
from vkprovider.controllers.context import Context
from vkprovider.controllers.session.inbox import Inbox
from vkprovider.controllers.session.strays import StraySessions
from vkprovider.controllers.worker.connection import read_secret
from vkprovider.controllers.worker.worker import Worker
from vkprovider.domain.claims.claim import Claim
from vkprovider.domain.definition.content import Content
from vkprovider.domain.lablet.inputs import Inputs
from vkprovider.domain.lablet.intent import Definition
from vkprovider.domain.lablet.leftovers import Leftovers
from vkprovider.domain.session.delivery import NO_DELIVERY, NO_TERMS, Delivery, Session, Terms, Verdict
from vkprovider.domain.topology.devices import DeviceAccessInfo, devices_for
from vkprovider.domain.worker.secrets import device_secret_refusal
from vkprovider.lds.deployments import Deployments
from vkprovider.lds.errors import Lacking
from vkprovider.lds.grader import Grader, Grading
from vkprovider.lds.spi import LabDelivery, ResponseData
from vkprovider.settings.services import LdsSettings

_log: Final = structlog.get_logger(__name__)


class Sessions:
    """The sessions of this replica's lablets; without deployments there are none, and no lablet waits for one.

    Attributes:
        strays: Sessions that no claim of this replica names; None without deployments.
    """

    def __init__(
        self,
        ctx: Context,
        deployments: Deployments | None,
        grader: Grader | None,
        *,
        definitions: Mapping[str, Definition],
        contents: Mapping[str, Content],
        workers: Mapping[str, Worker],
        worker_secrets: Callable[[], Collection[str]],
        inbox: Inbox,
        leads: Callable[[], bool],
        settings: LdsSettings,
    ) -> None:
        """Take what is known elsewhere.

        Args:
            ctx: The replica.
            deployments: Of the LDS; None if none is configured.
            grader: Gives verdicts; None if nobody does.
            definitions: By name.
            contents: By digest.
            workers: Ours, by name.
            worker_secrets: Returns the names of the Secrets that CMLWorkers name; no learner sees what they hold.
            inbox: What the LDS said of sessions.
            leads: Whether this replica does what only one should do.
            settings: How long a timeslot is, and which accesses a session receives.
        """
        self._ctx = ctx
        self._deployments = deployments
        self._grader = grader
        self._definitions = definitions
        self._contents = contents
        self._workers = workers
        self._worker_secrets = worker_secrets
        self._inbox = inbox
        self._settings = settings
        self.strays: StraySessions | None = None
        if deployments is not None:
            self.strays = StraySessions(ctx, deployments, inbox, mine=self._mine, leads=leads)

    # --------------------------------------------------------------------------------------------- facts

    def delivery(self, claim: Claim, inputs: Inputs, *, archive_failed: bool) -> Delivery:
        """Tell what is known of the LDS for a lablet."""
        terms = self._terms(claim)
        session, grades = claim.session, self._grader is not None
        if self._deployments is None or (not terms.enabled and session is None):
            return Delivery(grader=True) if grades else NO_DELIVERY
        if session is None:
            if not (claim.bound_to or inputs.username):
                return Delivery(wanted=True, grader=grades)
            try:
                choice = self._deployments.choose(self._load(), affinity=terms.affinity)
            except InputError as refusal:
                return Delivery(wanted=True, refusal=refusal.fault, grader=grades)
            except OutsideError as error:
                return Delivery(wanted=True, refusal=Fault(Trouble.LDS_UNAVAILABLE, error.message), grader=grades)
            return Delivery(wanted=True, deployment=choice.deployment.id, warning=choice.warning, grader=grades)
        said = self._inbox.of(session.id) if session.id else None
        return Delivery(
            wanted=True,
            started_at=said.started if said is not None else 0,
            ended_at=said.ended if said is not None else 0,
            grader=grades,
            archive_failed=archive_failed,
        )

    def took(self, claim: Claim, session: Session, delivery: Delivery) -> None:
        """Note that a row now names a session of the deployment that was chosen."""
        if self._deployments is not None:
            affinity = self._terms(claim).affinity
            self._deployments.took(session.deployment, affinity=affinity, warning=delivery.warning)

    def _terms(self, claim: Claim) -> Terms:
        definition = self._definitions.get(claim.definition)
        return definition.terms if definition is not None else NO_TERMS

    def _load(self) -> Counter[str]:
        """Count live sessions by deployment: ours by our rows, those of other replicas as the LDS last told them."""
        mine = Counter(session.deployment for session in self._mine())
        return mine + self.strays.elsewhere if self.strays is not None else mine

    def _mine(self) -> list[Session]:
        return [
            claim.session
            for worker in self._workers.values()
            for claim in worker.claims.claims.values()
            if claim.session is not None and not claim.session.archived_at
        ]

    # --------------------------------------------------------------------------------------------- steps

    async def provision(self, worker: Worker, claim: Claim, content: Content) -> Session:
        """Make the session of a row, if there is none yet, and set its devices; the row is given each result.

        Raises:
            InputError: `LDSDeploymentUnknown`, `DeviceSecretInvalid` or `SecretNotAllowed`.
            OutsideError: The LDS refuses, fails or does not answer.
            Fenced: The node is not ours any more.
        """
        session, terms = claim.session, self._terms(claim)
        assert session is not None  # noqa: S101 (decided from it)
        client = self._client(session, worker)
        if not session.id:
            session = await self._create(client, worker, claim, session, terms)
        devices = await self._devices(worker, claim, content, terms)
        await client.set_devices(session.id, devices)
        return msgspec.structs.replace(session, ready_at=self._ctx.now_unix)

    async def _create(
        self, client: LabDelivery, worker: Worker, claim: Claim, session: Session, terms: Terms
    ) -> Session:
        start = session.slot_start or self._ctx.now_unix
        end = session.slot_end or start + int(self._settings.timeslot_s)
        info = await client.create_session_with_part(
            session.username,
            datetime.fromtimestamp(start, UTC),
            datetime.fromtimestamp(end, UTC),
            terms.form,
            client_key=session.key,
            owner=names.mark(self._ctx.installation),
        )
        made = msgspec.structs.replace(
            session,
            id=info.id,
            base_url=self._base_url(session.deployment),
            login_url=info.public_login_url or "",
        )
        self._save(worker, claim, made)
        return made

    def _save(self, worker: Worker, claim: Claim, session: Session | None) -> None:
        current = worker.claims.claims.get(claim.pod_uid)
        if current is not None:
            worker.claims.put(msgspec.structs.replace(current, session=session))

    def _base_url(self, deployment: str) -> str:
        assert self._deployments is not None  # noqa: S101 (a session names one)
        return next((d.base_url for d in self._deployments.deployments if d.id == deployment), "")

    def _client(self, session: Session, worker: Worker) -> LabDelivery:
        if self._deployments is None:
            raise InputError(
                "LDSDeploymentUnknown",
                f"the session is at LDS deployment {session.deployment}, and none is configured: set LDS_API_URL or "
                "LDS_DEPLOYMENTS_CONFIG until it has ended",
            )
        return self._deployments.client(session.deployment).guarded(worker.guard)

    async def _devices(self, worker: Worker, claim: Claim, content: Content, terms: Terms) -> list[DeviceAccessInfo]:
        secret = await self._read_secret(terms.device_secret) if terms.device_secret else {}
        host, every = worker.address, self._settings.every_access
        return devices_for(content.topology, claim.ports, host, secret, every_access=every)

    async def _read_secret(self, name: str) -> dict[str, str]:
        keys = "username and password, or DEVICE.username and so on"
        secret = await read_secret(
            self._ctx, name, reason="DeviceSecretInvalid", keys=keys, used_for=names.USED_FOR_DEVICES
        )
        is_workers = name in self._worker_secrets()
        if refusal := device_secret_refusal(secret.metadata, self._ctx.namespace, is_workers=is_workers):
            raise InputError(Trouble.SECRET_NOT_ALLOWED, refusal)
        try:
            return {key: value.decode() for key, value in secret.data.items()}
        except UnicodeDecodeError:
            where = f"Secret {self._ctx.namespace}/{name}"
            raise InputError("DeviceSecretInvalid", f"{where} holds what is no text") from None

    async def archive(self, worker: Worker, claim: Claim) -> str:
        """Archive the session of a row; one that was never made is none.

        Returns:
            Why nobody can archive it, so that the end does not wait for ever; "" if it is archived.

        Raises:
            OutsideError: The LDS refuses, fails or does not answer.
            Fenced: The node is not ours any more.
        """
        session = claim.session
        assert session is not None  # noqa: S101 (decided from it)
        try:
            client = self._client(session, worker)
        except InputError as error:
            return error.message
        if session.id:
            await client.archive_session(session.id)
            return ""
        try:
            made = await client.list_sessions(owner=names.mark(self._ctx.installation), client_key=session.key)
        except Lacking:
            return ""  # if it was made, its first event tells of it
        for info in made:
            await client.archive_session(info.id)
        return ""

    async def responses(self, worker: Worker, claim: Claim) -> list[Any] | None:
        """Collect what the learner answered; None without a session.

        Raises:
            OutsideError: The LDS refuses, fails or does not answer.
            Fenced: The node is not ours any more.
        """
        session = claim.session
        if session is None or not session.id or self._deployments is None:
            return None
        try:
            data: ResponseData = await self._client(session, worker).collect_responses(session.id)
        except (NotFound, InputError):
            return None
        answered: list[Any] = msgspec.to_builtins(data.responses)
        return answered

    async def grade(self, claim: Claim, left: Leftovers | None) -> Verdict:
        """Have what was collected graded.

        Raises:
            OutsideError: The grader refuses, fails or does not answer.
        """
        assert self._grader is not None  # noqa: S101 (decided from it)
        session, content = claim.session, self._contents.get(claim.digest)
        about = None
        if session is not None and session.id:
            form = self._terms(claim).form or claim.definition
            about = {"id": session.id, "username": session.username, "form_qualified_name": form}
        return await self._grader.grade(
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

    async def login_url(self, deployment: str, session: str) -> str:
        """Ask for the whole login URL of a session; it is a secret.

        Raises:
            InputError: `LDSDeploymentUnknown`.
            OutsideError: The LDS refuses, fails or does not answer.
        """
        if self._deployments is None:
            raise InputError("LDSDeploymentUnknown", "no Lab Delivery System is configured")
        return await self._deployments.client(deployment).get_login_url(session)
