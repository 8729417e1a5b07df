"""The spawner: https://jupyterhub.readthedocs.io/en/stable/reference/spawners.html."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

from jupyterhub.spawner import Spawner
from traitlets import Enum, Float, Unicode, default

from jupyterhub_vkprovider.activity import activity_of
from jupyterhub_vkprovider.dialects import Dialect, Kind, Line, Status, poll_value
from jupyterhub_vkprovider.errors import NAMED, NO_ANSWER, NOT_THE_HUBS_FAULT, TOKENLESS, UNPROVEN, LabError, refused
from jupyterhub_vkprovider.following import Goal, Observed, follow, observe
from jupyterhub_vkprovider.progress import Progress
from jupyterhub_vkprovider.refusals import Refusal
from jupyterhub_vkprovider.service import RefusedError, Service, SilentError, TokenFileError

LIMITS: Final = frozenset({"MEM_LIMIT", "MEM_GUARANTEE", "CPU_LIMIT", "CPU_GUARANTEE"})
"""Variables of the hub's own limits, which say nothing about a lab."""

_AGAIN_S: Final = 1.0
_BUSY_S: Final = 0.5
_BUSY_MAX: Final = 20
"""How often a conflict may be told in a row of a lab that is not there."""

_PORTS: Final = {"http": 80, "https": 443}


class VkproviderSpawner(Spawner):
    """Starts the lab of a learner at vkprovider's portal, and stops it.

    The state of a lab is the portal's: the hub only remembers what the portal said last. Limits, `cmd` and `args` of
    JupyterHub are ignored, since the portal decides what a lab is.
    """

    service_url = Unicode(
        "https://vkprovider-portal.vkprovider-system:8083", help="The address of the portal, without a path."
    ).tag(config=True)
    page_url = Unicode(
        "", help="The address of the learners' pages, to which the hub's proxy leads; by default that of the portal."
    ).tag(config=True)
    service_ca_file = Unicode(
        "", help="A file of certificates that prove the portal; by default those of the system do."
    ).tag(config=True)
    token_file = Unicode(
        "/var/run/secrets/kubernetes.io/serviceaccount/token",
        help="The file of the hub's own token. It is read for each request.",
    ).tag(config=True)
    dialect = Enum(
        [dialect.value for dialect in Dialect],
        default_value=Dialect.SQR066.value,
        help="The dialect of the protocol, as the portal's setting has it.",
    ).tag(config=True)
    silence_timeout = Float(
        60.0, help="Seconds for which a start waits for a portal that does not answer, before it gives up."
    ).tag(config=True)
    stop_timeout = Float(330.0, help="Seconds that a lab may take to end.").tag(config=True)

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._told = Progress()
        self._known: Status | None = None
        self._nothing_began = False

    @default("start_timeout")
    def _start_timeout_default(self) -> int:
        """Return more than the portal's own timeout of a start (2400 s), which says why."""
        return 2460

    @default("http_timeout")
    def _http_timeout_default(self) -> int:
        """Return a long time: a portal that is down when a lab is ready does not end the lab."""
        return 600

    @default("poll_interval")
    def _poll_interval_default(self) -> int:
        return 8

    @default("options_form")
    def _options_form_default(self) -> Callable[[Spawner], Awaitable[str]]:
        return type(self).fetch_form

    async def fetch_form(self) -> str:
        """Return the portal's form, in which the learner chooses a lab.

        Raises:
            LabError: There is no form.
        """
        try:
            return await self._service.form(await self._user_token())
        except SilentError as error:
            self.log.warning("no form for %s: %s", self._log_name, error)
            raise LabError(503, NO_ANSWER) from error
        except RefusedError as error:
            raise refused(error.refusal) from error

    async def start(self) -> str:
        """Create the lab, wait until it is ready, and return the address of its page.

        Raises:
            LabError: There will be no lab.
        """
        await self._told.clear()
        self._nothing_began = False
        try:
            try:
                token = await self._begin()
            except LabError:
                self._nothing_began = True
                raise
            failure = await self._until_end(token, Goal.LAB)
            if failure is not None:
                raise LabError(NOT_THE_HUBS_FAULT, failure)
            return await self._page()
        finally:
            await self._told.end()

    async def stop(self, now: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002 (JupyterHub's signature)
        """Delete the lab, and wait until it has gone. After a start that began nothing, another's lab is left alone.

        Raises:
            LabError: It has not gone.
        """
        if self._nothing_began:
            return
        await self._told.clear()
        try:
            async with asyncio.timeout(self.stop_timeout):
                failure = await self._delete()
        except TimeoutError as error:
            raise LabError(504, f"The lab has not ended within {self.stop_timeout:.0f} s. Stop it again.") from error
        finally:
            await self._told.end()
        if failure is not None:
            raise LabError(NOT_THE_HUBS_FAULT, failure)

    async def poll(self) -> int | None:
        """Return None while there is a lab, else an exit status; without an answer, what was true last.

        A hub that begins asks so for each server that it knows, and takes what is there for ready. It waits for an
        answer: a start that never came to the portal is no lab.
        """
        observed = await self._observe()
        while observed.silent and self.pending == "check":
            await asyncio.sleep(_AGAIN_S)
            observed = await self._observe()
        if observed.status is Status.ABSENT and self._known not in (None, Status.ABSENT):
            await asyncio.sleep(_AGAIN_S)  # a replica may be late, and the hub ends on one answer what is its own
            observed = await self._observe()
        if observed.status is not None:
            self._known = observed.status
            self._report(observed)
        if self._known is not None:
            return poll_value(self._known, Dialect(self.dialect))
        # A hub that left in the middle of a start has a server in its database, but no state: no lab ends on doubt.
        return None if self.server else 0

    async def get_url(self) -> str:
        """Return the address of the lab, as soon as the portal answers.

        A hub asks for it when it begins, of labs that it knows, and stops those that then are out of reach for
        `http_timeout`. A portal that is down does not end labs.
        """
        while (await self._observe()).silent:  # noqa: ASYNC110 (another program has to change)
            await asyncio.sleep(_AGAIN_S)
        page = urlsplit(await self._page())
        host = f"[{page.hostname}]" if ":" in (page.hostname or "") else page.hostname
        return f"{page.scheme}://{host}:{page.port or _PORTS.get(page.scheme, 80)}{self.server.base_url}"

    async def progress(self) -> AsyncGenerator[dict[str, int | str], None]:
        """Yield the events of the current operation until it has ended."""
        async with aclosing(self._told.listen()) as events:
            async for event in events:
                yield event.for_hub()

    def get_state(self) -> dict[str, Any]:
        """Return what the hub's database keeps: the story of the last operation, and the lab's last known status."""
        return {**super().get_state(), **self._told.story.saved(), "status": self._known}

    def load_state(self, state: dict[str, Any]) -> None:
        """Take what `get_state` returned."""
        super().load_state(state)
        self._told.restore(state)
        self._known = next((status for status in Status if status == state.get("status")), None)

    def clear_state(self) -> None:
        """Forget the last operation."""
        super().clear_state()
        self._told.forget()
        self._known = None

    async def _begin(self) -> str:
        """Ask for the lab until there is one, and return the user's token.

        Raises:
            LabError: There will be none.
        """
        if self.name:
            raise LabError(400, NAMED)
        token = await self._user_token()
        env = {name: str(value) for name, value in self.get_env().items() if name not in LIMITS}
        clock = asyncio.get_running_loop().time
        give_up_at, conflicts = clock() + self.silence_timeout, 0
        while True:
            try:
                await self._service.create(token, self.user_options or {}, env)
            except SilentError as error:
                self.log.warning("no lab for %s yet: %s", self._log_name, error)
                if clock() >= give_up_at:
                    raise LabError(NOT_THE_HUBS_FAULT, NO_ANSWER) from error
                await self._say("The lab service does not answer yet; it is asked again")
                await asyncio.sleep(_AGAIN_S)
            except RefusedError as error:
                conflicts = conflicts + 1 if error.refusal.busy else _BUSY_MAX
                if await self._took_over(token, error.refusal, last=conflicts >= _BUSY_MAX):
                    return token
                give_up_at = clock() + self.silence_timeout
                await asyncio.sleep(_BUSY_S)
            else:
                return token

    async def _took_over(self, token: str, refusal: Refusal, *, last: bool) -> bool:
        """Return whether the lab that is in the way is the one to wait for; a lab that ends is waited for here.

        Raises:
            LabError: Nothing is in the way that ends, so the refusal stands.
        """
        status = (await self._observe()).status if refusal.busy else None
        match status:
            case Status.RUNNING:
                await self._say("Your lab runs already, with what you chose before")
                return True
            case Status.PENDING:
                await self._say("Your lab starts already, with what you chose before")
                return True
            case Status.TERMINATING:
                await self._say("Your previous lab is ending; the new one starts after that")
                async with aclosing(follow(self._service, Dialect(self.dialect), token, Goal.NO_LAB)) as lines:
                    async for _ in lines:
                        pass
                return False
            case _ if last:
                raise refused(refusal)
            case _:
                return False

    async def _delete(self) -> str | None:
        """Delete the lab, wait for its end, and return why it failed; None if the lab has gone."""
        token = await self._user_token(needed=False)
        while True:
            try:
                if await self._service.delete():
                    return None
                return await self._until_end(token, Goal.NO_LAB)
            except SilentError as error:
                self.log.warning("the lab of %s cannot be deleted yet: %s", self._log_name, error)
                await asyncio.sleep(_AGAIN_S)
            except TokenFileError as error:
                self.log.warning("%s", error)
                raise LabError(NOT_THE_HUBS_FAULT, UNPROVEN) from error
            except RefusedError as error:
                if not error.refusal.busy:
                    raise refused(error.refusal) from error
                await self._say("Another operation of the lab goes on; the lab is deleted after that")
                await asyncio.sleep(_BUSY_S)

    async def _until_end(self, token: str, goal: Goal) -> str | None:
        """Tell the story of the current operation until it has ended; return why it failed, None if it did not."""
        said = ""
        async with aclosing(follow(self._service, Dialect(self.dialect), token, goal)) as lines:
            async for line in lines:
                await self._told.add(line)
                if line.kind is Kind.ERROR:
                    said = line.text
                elif line.kind is Kind.FAILED:
                    return said or self._told.story.events[-1].message
        self._known = Status.RUNNING if goal is Goal.LAB else Status.ABSENT
        return None

    async def _say(self, text: str) -> None:
        """Tell the learner what the spawner waits for, once."""
        events = self._told.story.events
        if not events or events[-1].message != text:
            await self._told.add(Line(Kind.INFO, text))

    async def _observe(self) -> Observed:
        """Ask the portal for the lab; an answer that the hub may not have tells no status."""
        try:
            return await observe(self._service)
        except (RefusedError, TokenFileError) as error:
            self.log.warning("cannot ask the portal for the lab of %s: %s", self._log_name, error)
            return Observed(None, {}, silent=False)

    async def _page(self) -> str:
        """Return the address of the lab's page. Nublado has none, and tells where the lab itself listens."""
        if self.dialect == Dialect.NUBLADO.value and not self.page_url:
            told = (await self._observe()).body.get("internal_url")
            if isinstance(told, str):
                return told
        return f"{(self.page_url or self.service_url).rstrip('/')}/labs/{quote(self.user.name, safe='')}"

    def _report(self, observed: Observed) -> None:
        """Tell the hub of the learner's activity, as it notes that of a server that it stops."""
        if observed.status is not Status.RUNNING or self.orm_spawner is None:
            return
        known = self.orm_spawner.last_activity
        at = activity_of(observed.body, known and known.replace(tzinfo=UTC), datetime.now(UTC), observed.date)
        if at is not None:
            naive = at.replace(tzinfo=None)  # as the hub's database has its times
            self.orm_spawner.last_activity = naive
            self.user.last_activity = max(self.user.last_activity or naive, naive)
            self.user.db.commit()

    async def _user_token(self, *, needed: bool = True) -> str:
        """Return the token of the user that auth_state has; "" if it has none that is needed.

        Raises:
            LabError: There is none.
        """
        state = await self.user.get_auth_state()
        token = state.get("token") if isinstance(state, dict) else None
        if isinstance(token, str) and token:
            return token
        if needed:
            raise LabError(403, TOKENLESS)
        return ""

    @property
    def _service(self) -> Service:
        return Service(
            url=self.service_url,
            user=self.user.name,
            token_file=Path(self.token_file),
            ca_file=Path(self.service_ca_file) if self.service_ca_file else None,
        )
