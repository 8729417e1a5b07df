"""Login URLs: who gets one, and that it is the LDS's own, whole and fresh."""

import json
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
import structlog
from aiohttp.test_utils import make_mocked_request

from tests.component.web.reviews import RIGHTS, TOKENS, says
from tests.support.scripted import ScriptedServer
from vkprovider.lablet.reasons import Trouble
from vkprovider.labs.controllers.lablet.exports import LabOfLablet
from vkprovider.labs.http.lablets import Logins, LoginUrl
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.session.delivery import Session
from vkprovider.platform.errors import InputError, NotFound, OutsideError, Unavailable
from vkprovider.platform.http.access import AccessControl
from vkprovider.platform.http.answers import Refused
from vkprovider.platform.kube.client import KubeClient

SECRET_URL = "https://lds.example.com/login/s-1?token=0123"
SESSION = Session("lds-1", "key", "ann", id="s-1", ready_at=5)
CLAIM = Claim("uid-1", "team-a", "pod-1", "netlab", "def-uid", "1.0.0", "digest", lab_id="lab-1", session=SESSION)


@dataclass
class Lablets:
    """The lablets that there are, and the LDS that has their sessions."""

    claim: Claim = CLAIM
    reported: str = ""
    sessions: list[tuple[str, str]] = field(default_factory=list)

    async def find(self, key: str) -> LabOfLablet | None:
        return LabOfLablet("w1", self.claim, self.reported) if key == self.claim.pod_uid else None

    async def login_url(self, session: Session, session_id: str) -> str:
        self.sessions.append((session.deployment, session_id))
        return SECRET_URL


@pytest.fixture
def access(server: ScriptedServer, kube: KubeClient) -> AccessControl:
    says(server, when=TOKENS, times=9, authenticated=True, user={"username": "teacher"})
    return AccessControl(kube)


async def ask(access: AccessControl, lablets: Lablets, login_url: LoginUrl | None, key: str = "uid-1") -> Any:
    headers = {"Authorization": "Bearer t"}
    request = make_mocked_request("GET", f"/labs/{key}/login", headers=headers, match_info={"id": key})
    answer = await Logins(access, lablets, login_url).handle(request)
    assert answer.headers["Cache-Control"] == "no-store"
    return json.loads(answer.text or "")


async def refused(awaitable: Any) -> tuple[int, str]:
    with pytest.raises(Refused) as caught:
        await awaitable
    return caught.value.status, caught.value.word


async def test_a_session_that_its_pod_reports_is_ready_before_its_row_says_so(
    server: ScriptedServer, access: AccessControl
) -> None:
    """A replica that does not own the worker reads rows, which are written up to ten seconds later."""
    says(server, when=RIGHTS, allowed=True)
    requested = msgspec.structs.replace(CLAIM, session=Session("lds-1", "key", "ann"))
    assert await refused(ask(access, (lablets := Lablets(requested)), lablets.login_url)) == (409, "NoSession")
    answer = await ask(access, (lablets := Lablets(requested, "s-1")), lablets.login_url)
    assert (answer["session"], lablets.sessions) == ("s-1", [("lds-1", "s-1")])
    made = msgspec.structs.replace(CLAIM, session=Session("lds-1", "key", "ann", id="s-1"))
    lablets = Lablets(made, "s-of-somebody-else")
    assert await refused(ask(access, lablets, lablets.login_url)) == (409, "NoSession"), "the row knows another one"
    assert lablets.sessions == []


async def test_whole_url_is_asked_for_each_time_and_never_logged(server: ScriptedServer, access: AccessControl) -> None:
    says(server, when=RIGHTS, allowed=True)
    lablets = Lablets()
    with structlog.testing.capture_logs() as logs:
        for _ in range(2):
            answer = await ask(access, lablets, lablets.login_url)
            assert answer == {"url": SECRET_URL, "username": "ann", "session": "s-1", "pod": "pod-1"}
    assert lablets.sessions == [("lds-1", "s-1")] * 2
    assert [entry["to"] for entry in logs] == ["teacher"] * 2
    assert "0123" not in str(logs)
    asked = server.seen[-1].json["spec"]
    assert (asked["user"], asked["resourceAttributes"]["subresource"]) == ("teacher", "login")
    assert (asked["resourceAttributes"]["namespace"], asked["resourceAttributes"]["name"]) == ("team-a", "pod-1")


async def test_the_lds_is_not_asked_for_who_may_not(server: ScriptedServer, access: AccessControl) -> None:
    says(server, when=RIGHTS, allowed=False)
    lablets = Lablets()
    assert await refused(ask(access, lablets, lablets.login_url)) == (403, "NotAllowed")
    assert lablets.sessions == []


@pytest.mark.parametrize("change", [{"ready_at": 0}, {"archived_at": 9}, None])
async def test_without_a_session_there_is_no_login(
    server: ScriptedServer, access: AccessControl, change: dict[str, Any] | None
) -> None:
    says(server, when=RIGHTS, allowed=True)
    session = None if change is None else msgspec.structs.replace(SESSION, **change)
    lablets = Lablets(msgspec.structs.replace(CLAIM, session=session))
    assert await refused(ask(access, lablets, lablets.login_url)) == (409, "NoSession")
    assert await refused(ask(access, Lablets(), None)) == (409, "NoSession")
    assert await refused(ask(access, lablets, lablets.login_url, "other")) == (404, "LabUnknown")
    assert lablets.sessions == []


@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [
        (NotFound("gone"), 409, "NoSession"),
        (Unavailable("down"), 503, "LoginUnavailable"),
        (InputError(Trouble.LDS_DEPLOYMENT_UNKNOWN, "not configured"), 503, "LDSDeploymentUnknown"),
    ],
)
async def test_faults_of_the_lds_are_said(
    server: ScriptedServer, access: AccessControl, error: OutsideError | InputError, status: int, reason: str
) -> None:
    async def fail(_session: Session, _session_id: str) -> str:
        raise error

    says(server, when=RIGHTS, allowed=True)
    assert await refused(ask(access, Lablets(), fail)) == (status, reason)
