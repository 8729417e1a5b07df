"""Several deployments from a file that changes while they are used."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from structlog.testing import capture_logs

from tests.component.lds.conftest import Say, ScriptedLds
from tests.component.lds.test_lds_client import create, session
from vkprovider.labs.lds.deployments import Deployments
from vkprovider.labs.lds.dialect import Full
from vkprovider.labs.lds.wire import ContentMetadata
from vkprovider.labs.settings.services import LdsSettings
from vkprovider.platform.errors import InputError, NotFound, OutsideError, Throttled, Unavailable

DOWN = Say(503, {"code": "Down", "message": "down"})
FULL = Say(503, {"code": "CapacityExhausted", "message": "full"})


class File:
    """The deployments file; the entries are those of a server unless they name another."""

    def __init__(self, path: Path, lds: ScriptedLds) -> None:
        self.path = path
        self.lds = lds

    def write(self, *entries: dict[str, Any]) -> None:
        """As a mounted ConfigMap changes: at once."""
        told = [
            {"base_url": f"{self.lds.url}/{entry['id']}", "capacity": 10, "priority": number} | entry
            for number, entry in enumerate(entries)
        ]
        self.swap(yaml.safe_dump({"lds_deployments": told}))

    def swap(self, text: str) -> None:
        new = self.path.with_suffix(".new")
        new.write_text(text)
        new.replace(self.path)


@pytest.fixture
def file(tmp_path: Path, lds: ScriptedLds) -> Iterator[File]:
    yield File(tmp_path / "lds_deployments.yaml", lds)
    lds.exchanges.clear()  # these base URLs have a path, and the protocol knows no prefix


Open = Callable[..., Deployments]


@pytest.fixture
async def open_(file: File) -> AsyncIterator[Open]:
    opened = []

    def build(**options: Any) -> Deployments:
        deployments = Deployments(LdsSettings(path=str(file.path), **options))
        opened.append(deployments)
        return deployments

    yield build
    for each in opened:
        await each.close()


def choose(deployments: Deployments, load: dict[str, int], affinity: str | None = None) -> str:
    """Choose one, and follow that choice."""
    choice = deployments.choose(load, affinity=affinity)
    deployments.took(choice.deployment.id, affinity=affinity, warning=choice.warning)
    return choice.deployment.id


def chosen(deployments: Deployments, turns: int = 1, **load: int) -> list[str]:
    return [choose(deployments, load) for _ in range(turns)]


async def test_turns(file: File, open_: Open) -> None:
    """R000-094 … R000-096; an affinity does not advance the rotation."""
    file.write({"id": "a"}, {"id": "b"}, {"id": "off", "enabled": False})
    deployments = open_()
    assert chosen(deployments) == ["a"]
    assert choose(deployments, {}, affinity="b") == "b"
    with capture_logs() as logs:
        assert choose(deployments, {}, affinity="off") == "b"
    assert [line["why"] for line in logs] == ["LDS deployment off of lds.affinity is disabled"]
    assert chosen(deployments, turns=3) == ["a", "b", "a"]


async def test_a_choice_that_is_not_followed_does_not_advance_the_rotation(file: File, open_: Open) -> None:
    file.write({"id": "a"}, {"id": "b"})
    deployments = open_()
    assert {deployments.choose({}).deployment.id for _ in range(3)} == {"a"}
    assert chosen(deployments, turns=2) == ["a", "b"]


async def test_strategy(file: File, open_: Open) -> None:
    file.write({"id": "a"}, {"id": "b"})
    assert chosen(open_(strategy="priority"), turns=3) == ["a", "a", "a"]


async def test_each_client_reaches_its_own(file: File, lds: ScriptedLds, open_: Open) -> None:
    file.write({"id": "a"}, {"id": "b"})
    deployments = open_(token="of-all")
    for name in "ab":
        lds.say(f"GET /{name}/api/v1/sessions/s-1", Say(200, session()))
        await deployments.client(name).get_session_info("s-1")
    assert lds.lines == ["GET /a/api/v1/sessions/s-1", "GET /b/api/v1/sessions/s-1"]
    assert {each.headers["Authorization"] for each in lds.asked} == {"Bearer of-all"}


async def test_token_file_may_change(file: File, lds: ScriptedLds, open_: Open, tmp_path: Path) -> None:
    token = tmp_path / "token"
    file.write({"id": "a", "token_file": str(token)})
    lds.say("POST /a/api/v1/sessions/s-1/archive", Say(200, session(state="ARCHIVED")))
    deployments = open_(token="of-all")
    for text in ("one\n", "two\n"):
        token.write_text(text)
        await deployments.client("a").archive_session("s-1")
    assert [each.headers["Authorization"] for each in lds.asked] == ["Bearer one", "Bearer two"]


async def test_failing_one_is_avoided_and_comes_back(file: File, lds: ScriptedLds, open_: Open) -> None:
    file.write({"id": "a"}, {"id": "b"})
    deployments = open_()
    lds.say("GET /a/api/v1/sessions/s-1", DOWN, DOWN, DOWN, Say(200, session()))
    with capture_logs() as logs:
        with pytest.raises(Unavailable):
            await deployments.client("a").get_session_info("s-1")
        assert chosen(deployments, turns=3) == ["b", "b", "b"]
        await deployments.client("a").get_session_info("s-1")
    assert "a" in chosen(deployments, turns=2)
    assert [line["event"] for line in logs] == ["lds deployment avoided for a while", "lds deployment answers again"]


async def test_all_failing_says_when_to_ask_again(file: File, lds: ScriptedLds, open_: Open) -> None:
    file.write({"id": "a"})
    deployments = open_()
    lds.say("GET /a/api/v1/sessions/s-1", DOWN)
    with pytest.raises(Unavailable):
        await deployments.client("a").get_session_info("s-1")
    with pytest.raises(Throttled, match=r"no LDS deployment answers: a is avoided .*503 Down") as caught:
        deployments.choose({})
    assert 0 < caught.value.after_s <= 2.0


async def test_one_that_says_that_it_is_full_is_full(file: File, lds: ScriptedLds, open_: Open) -> None:
    """Another replica's sessions may not be in our count yet."""
    file.write({"id": "a"})
    deployments = open_()
    lds.say("POST /a/api/v1/sessions", FULL)
    lds.say("GET /a/api/v1/info", Say(404))
    with pytest.raises(Full):
        await create(deployments.client("a"))
    with pytest.raises(InputError, match=r"NoLDSDeployment: .*a says that it is full"):
        deployments.choose({"a": 3})


async def test_unknown_session_is_no_fault_of_the_deployment(file: File, lds: ScriptedLds, open_: Open) -> None:
    file.write({"id": "a"})
    deployments = open_()
    lds.say("GET /a/api/v1/sessions/s-1", Say(404, {"code": "UnknownSession", "message": "no"}))
    with pytest.raises(NotFound):
        await deployments.client("a").get_session_info("s-1")
    assert chosen(deployments) == ["a"]


async def test_deployment_without_info_is_not_avoided(file: File, lds: ScriptedLds, open_: Open) -> None:
    file.write({"id": "a"})
    deployments = open_()
    lds.say("GET /a/api/v1/info", Say(404))
    assert (await deployments.client("a").info()).extensions == frozenset()
    assert chosen(deployments) == ["a"]


async def test_reload(file: File, lds: ScriptedLds, open_: Open) -> None:
    file.write({"id": "a"}, {"id": "b"})
    deployments = open_()
    kept = deployments.client("b")
    assert not await deployments.reload()
    file.write({"id": "b"}, {"id": "c"})
    assert await deployments.reload()
    assert chosen(deployments, turns=3) == ["b", "c", "b"]
    assert deployments.client("b") is kept
    lds.say("GET /c/api/v1/sessions/s-1", Say(200, session()))
    await deployments.client("c").get_session_info("s-1")
    with pytest.raises(InputError, match="LDSDeploymentUnknown: LDS deployment a is not configured: put it back"):
        deployments.client("a")


async def test_disabled_one_keeps_its_client(file: File, open_: Open) -> None:
    file.write({"id": "a"}, {"id": "b"})
    deployments = open_()
    client = deployments.client("a")
    file.write({"id": "a", "enabled": False, "capacity": 0}, {"id": "b"})
    assert await deployments.reload()
    assert chosen(deployments, turns=2) == ["b", "b"]
    assert deployments.client("a") is client


async def test_call_under_way_survives_a_reload(file: File, lds: ScriptedLds, open_: Open) -> None:
    file.write({"id": "a"})
    deployments = open_()
    lds.say("GET /a/api/v1/sessions/s-1", Say(fault="hang"))
    call = asyncio.create_task(deployments.client("a").get_session_info("s-1"))
    await lds.arrived.wait()
    file.write({"id": "a", "base_url": f"{lds.url}/moved"})
    assert await deployments.reload()
    lds.say("GET /a/api/v1/sessions/s-1", Say(200, session()))
    lds.released.set()
    assert (await call).id == "s-1"


async def test_late_failure_at_the_old_address_says_nothing_about_the_new(
    file: File, lds: ScriptedLds, open_: Open
) -> None:
    file.write({"id": "a"})
    deployments = open_()
    old = deployments.client("a")
    file.write({"id": "a", "base_url": f"{lds.url}/moved"})
    await deployments.reload()
    lds.say("GET /a/api/v1/sessions/s-1", DOWN)
    with pytest.raises(Unavailable):
        await old.get_session_info("s-1")
    assert chosen(deployments) == ["a"]


@pytest.mark.parametrize("text", ["", "{", "lds_deployments: [{id: a}]"])
async def test_wrong_new_file_keeps_the_old_one_and_says_why(file: File, open_: Open, text: str) -> None:
    file.write({"id": "a"})
    deployments = open_()
    file.swap(text)
    with capture_logs() as logs:
        assert not await deployments.reload()
        assert not await deployments.reload()
    assert chosen(deployments) == ["a"]
    assert deployments.problem.startswith(f"LDS_DEPLOYMENTS_CONFIG {file.path}: ")
    assert [line["why"] for line in logs] == [deployments.problem], "logged once, not at every reading"
    file.write({"id": "a"})
    assert not await deployments.reload()
    assert deployments.problem == ""


async def test_wrong_file_at_the_start(file: File, open_: Open) -> None:
    file.swap("{")
    with pytest.raises(InputError, match="SettingInvalid"):
        open_()


async def test_url_alone(lds: ScriptedLds, open_: Open) -> None:
    """C33."""
    deployments = open_(url=f"{lds.url}/one")
    lds.say("GET /one/api/v1/sessions/s-1", Say(200, session()))
    choice = deployments.choose({"default": 100_000})
    assert (await deployments.client(choice.deployment.id).get_session_info("s-1")).id == "s-1"


async def test_file_goes_before_the_url_and_its_loss_is_a_fault(file: File, lds: ScriptedLds, open_: Open) -> None:
    deployments = open_(url=f"{lds.url}/one")
    assert chosen(deployments) == ["default"]
    file.write({"id": "a"})
    assert await deployments.reload()
    assert chosen(deployments) == ["a"]
    file.path.unlink()
    assert not await deployments.reload()
    assert chosen(deployments) == ["a"]
    assert "No such file" in deployments.problem


async def test_watch(file: File, open_: Open) -> None:
    file.write({"id": "a"})
    deployments = open_()
    watching = asyncio.create_task(deployments.watch(every_s=0.01))
    file.write({"id": "b"})
    async with asyncio.timeout(30):
        while chosen(deployments) != ["b"]:  # noqa: ASYNC110 (no event announces it)
            await asyncio.sleep(0.01)
    watching.cancel()
    with suppress(asyncio.CancelledError):
        await watching


async def test_refresh_of_all_tells_of_each(file: File, lds: ScriptedLds, open_: Open) -> None:
    """R000-080, R000-104: a deployment that fails does not stop the others; a disabled one still has sessions."""
    file.write({"id": "a"}, {"id": "b"}, {"id": "off", "enabled": False})
    answer = {"form_qualified_name": "f", "version": "2", "refreshed_at": "2026-03-01T08:00:00Z"}
    lds.say("POST /a/api/v1/content/refresh", Say(404, {"code": "UnknownForm", "message": "no"}))
    lds.say("POST /b/api/v1/content/refresh", Say(200, answer))
    lds.say("POST /off/api/v1/content/refresh", Say(200, answer))
    outcomes = await open_().refresh_content("f")
    assert isinstance(outcomes.pop("a"), OutsideError)
    assert outcomes.keys() == {"b", "off"}
    for content in outcomes.values():
        assert isinstance(content, ContentMetadata)
        assert content.version == "2"
