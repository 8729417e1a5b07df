"""A user's lab from the request to its end, by the objects that everybody can see (R002-003, 008, 013-034, 053-054)."""

import asyncio

import pytest

from tests.component.controllers.looking import eventually
from tests.component.portal.harness import Json, PortalWorld, Running
from tests.component.portal.wishes import ask, refused, wanted
from vkprovider.platform.times import unix
from vkprovider.portal.pure.options import Grounds
from vkprovider.portal.service.index import UserLabIndex
from vkprovider.portal.service.requests import Rejected


async def test_a_lab_is_made_found_and_deleted_and_leaves_nothing(world: PortalWorld) -> None:
    running = await world.replica(VKPROVIDER_PORTAL_USERNAME_PREFIX="oidc:")
    name = await world.define(devices=("r1", "r2"))
    caller = world.caller("alice")._replace(username="oidc:alice")
    await running.replica.requests.create(
        caller, wanted(name, env={"HUB_TOKEN": "hush"}), running.replica.choices.menu()
    )
    operation = await world.until_phase("alice", "complete")
    await world.until_unlocked()
    made = running.writes
    assert len(set(made)) <= 9, made  # a step may be repeated

    namespace = await world.admin.get(world.namespace("alice"))
    assert namespace is not None
    labels, notes = namespace["metadata"]["labels"], namespace["metadata"]["annotations"]
    assert labels["vkprovider.io/portal"] == "vkprovider-system"
    assert labels["vkprovider.io/user"] == notes["vkprovider.io/user"] == "alice"
    assert "hush" not in str(namespace)
    request = await world.note("alice", "request")
    assert operation["id"] == request["id"]
    assert request["env"] == ["HUB_TOKEN"]

    pod = await world.admin.get(world.pod("alice"))
    assert pod is not None
    assert pod["spec"]["runtimeClassName"] == f"{name}-small"
    containers = pod["spec"]["containers"]
    assert [each["name"] for each in containers] == ["lab", "r1", "r2"], "each device has a status of its own"
    assert {each["image"] for each in containers} == {f"{name}-small:1.0.0"}
    assert all(each["stdin"] and each["tty"] for each in containers)
    assert pod["spec"]["serviceAccountName"] == "nb-alice"
    assert pod["metadata"]["annotations"]["vkprovider.io/username"] == "alice"
    assert pod["metadata"]["annotations"]["vkprovider.io/timeslot-end"]
    secret = await world.admin.get(f"{world.namespace('alice')}/secrets/nb-alice")
    assert secret is not None
    assert set(secret["data"]) == {"HUB_TOKEN"}
    config = await world.admin.get(f"{world.namespace('alice')}/configmaps/nb-alice-env")
    assert config is not None
    assert "hush" not in str(config)
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/nublado-alice/rolebindings/nb-alice"
    binding = await world.admin.get(rbac)
    assert binding is not None
    assert binding["roleRef"]["name"] == "vkprovider-learner"
    assert binding["subjects"][0]["name"] == "oidc:alice"
    for each in (namespace, pod, secret, config, binding):  # R002-065
        assert each["metadata"]["annotations"]["argocd.argoproj.io/sync-options"] == "Prune=false"
        assert each["metadata"]["labels"]["argocd.argoproj.io/instance"] == "nublado-users"

    await running.replica.requests.delete("alice", "hub")
    await world.until_gone("alice")
    await world.until_unlocked()
    deleted = [line for line in running.writes if line.startswith("DELETE /api/v1/namespaces/nublado-alice")]
    assert list(dict.fromkeys(deleted)) == [  # a step may be repeated
        "DELETE /api/v1/namespaces/nublado-alice/pods/nb-alice",
        "DELETE /api/v1/namespaces/nublado-alice",
    ]
    with pytest.raises(Rejected) as error:
        await running.replica.requests.delete("alice", "hub")
    assert error.value.rejection.grounds is Grounds.UNKNOWN_USER


async def test_a_user_has_one_lab_and_one_operation_at_a_time(world: PortalWorld) -> None:
    running, name = await world.replica(), await world.define()
    world.stage.boots = False
    await ask(world, running, "alice", name)
    assert await refused(world, running, "alice", name) is Grounds.OPERATION_IN_PROGRESS
    world.stage.boots = True
    await world.until_phase("alice", "complete")
    await eventually(lambda: _known(running.replica.index, "alice", "complete"), "the replica knows")
    before = await world.note("alice", "request")
    assert await refused(world, running, "alice", name) is Grounds.LAB_EXISTS
    assert await world.note("alice", "request") == before  # R002-022
    world.stage.stops = False
    await running.replica.requests.delete("alice", "alice")
    await running.replica.requests.delete("alice", "alice")  # a second one changes nothing
    ending = await world.note("alice", "ending")
    assert await refused(world, running, "alice", name) is Grounds.OPERATION_IN_PROGRESS
    assert await world.note("alice", "ending") == ending
    world.stage.stops = True
    await world.until_gone("alice")
    await ask(world, running, "alice", name)
    await world.until_phase("alice", "complete")


async def test_many_requests_of_one_user_at_two_replicas_make_one_lab(world: PortalWorld) -> None:
    replicas = [await world.replica(), await world.replica()]
    name = await world.define()
    tries = [ask(world, replicas[number % 2], "alice", name) for number in range(20)]
    answers = await asyncio.gather(*tries, return_exceptions=True)
    accepted = [answer for answer in answers if not isinstance(answer, BaseException)]
    assert len(accepted) == 1
    assert {type(answer) for answer in answers if isinstance(answer, BaseException)} == {Rejected}
    await world.until_phase("alice", "complete")
    assert len(world.stage.made) == 1
    assert (await world.note("alice", "request"))["id"] == accepted[0].request.id


@pytest.mark.parametrize("marked", [False, True])
async def test_the_namespace_of_somebody_else_is_never_touched(world: PortalWorld, *, marked: bool) -> None:
    """Neither a stranger's nor one with our mark whose user has a name that only looks alike (R002-024)."""
    running, name = await world.replica(), await world.define()
    labels = {"vkprovider.io/portal": "vkprovider-system", "vkprovider.io/user": "bob"} if marked else {}
    await world.stranger("nublado-alice", labels, {"vkprovider.io/user": "bob"} if marked else {})
    before = await world.admin.get("/api/v1/namespaces/nublado-alice")
    assert await refused(world, running, "alice", name) is Grounds.NAMESPACE_CONFLICT
    with pytest.raises(Rejected):
        await running.replica.requests.delete("alice", "hub")
    assert await world.admin.get("/api/v1/namespaces/nublado-alice") == before
    await world.until_unlocked()


async def test_a_failed_lab_keeps_its_record_and_is_replaced_in_one_call(world: PortalWorld) -> None:
    # R002-018, 023
    running, name = await world.replica(), await world.define()
    world.stage.boots = False
    await ask(world, running, "alice", name, env={"OLD_TOKEN": "1"})
    await world.stage.fails(world.pod("alice"))
    failed = await world.until_phase("alice", "failed")
    assert failed["reason"] == "UserLabFailed"
    uid = (await world.admin.get(world.namespace("alice")) or {})["metadata"]["uid"]
    world.stage.boots = True
    accepted = await ask(world, running, "alice", name, env={"NEW_TOKEN": "2"})
    operation = await world.until_phase("alice", "complete")
    assert operation["id"] == accepted.request.id
    namespace = await world.admin.get(world.namespace("alice"))
    assert namespace is not None
    assert namespace["metadata"]["uid"] == uid
    secret = await world.admin.get(f"{world.namespace('alice')}/secrets/nb-alice")
    assert set((secret or {})["data"]) == {"NEW_TOKEN"}
    assert len(world.stage.made) == 2


async def test_a_lab_that_the_api_server_refuses_says_why(world: PortalWorld) -> None:
    running, name = await world.replica(), await world.define()
    running.api.fault(r"^POST .*/pods$", status=403, message="exceeded quota: labs", count=None)
    await ask(world, running, "alice", name)
    failed = await world.until_phase("alice", "failed")
    assert failed["reason"] == "PodRefused"
    assert "exceeded quota" in failed["text"]
    await world.until_unlocked()


async def test_a_lab_that_a_starting_api_server_refuses_is_made_soon(world: PortalWorld) -> None:
    """It refuses whom it does not know yet, and what its admission plugins have not read."""
    running, name = await world.replica(), await world.define()
    running.api.fault(r"^POST .*/rolebindings$", status=403, message="RBAC: clusterrole not found", count=1)
    running.api.fault(r"^POST .*/pods$", status=403, message="not yet ready to handle request", count=2)
    await ask(world, running, "alice", name)
    await world.until_phase("alice", "complete")
    await world.until_unlocked()
    assert len(world.stage.made) == 1


async def test_a_lab_is_reset_as_the_command_line_resets_one(world: PortalWorld) -> None:
    """Each request is another one for the provider; a lab that was stopped starts again; nothing else is reset."""
    running, name = await world.replica(), await world.define()
    requests = running.replica.requests
    await ask(world, running, "alice", name)
    await world.until_phase("alice", "complete")
    with pytest.raises(Rejected) as early:
        await requests.reset("alice", "alice")
    assert early.value.rejection.grounds is Grounds.CANNOT_RESET
    assert "is not there yet" in early.value.rejection.msg
    pod = world.pod("alice")
    await world.stage.report(pod, {"vkprovider.io/desired-state": "STOPPED"})
    imported = {"type": "vkprovider.io/LabImported", "status": "True", "lastTransitionTime": "2026-11-26T12:00:00Z"}
    await world.admin.patch(f"{pod}/status", {"status": {"conditions": [imported]}})
    asked = []
    for _ in range(2):

        async def reset() -> bool:
            try:
                await requests.reset("alice", "alice")
            except Rejected:  # the watch does not show the lab yet
                return False
            return True

        await eventually(reset, "the lab is reset")
        notes = (await world.admin.get(pod) or {})["metadata"]["annotations"]
        assert "vkprovider.io/desired-state" not in notes
        asked.append(notes["vkprovider.io/reset"])
    assert len(set(asked)) == 2
    with pytest.raises(Rejected) as none:
        await requests.reset("bob", "bob")
    assert none.value.rejection.grounds is Grounds.UNKNOWN_USER


async def _of_alice(world: PortalWorld) -> Running:
    """Return a replica that knows the lab of alice, which is complete and lasts 18,000 s at most."""
    running = await world.replica(VKPROVIDER_PORTAL_DURATION_MAX_SECONDS="18000")
    name = await world.define()
    await ask(world, running, "alice", name)
    await world.until_phase("alice", "complete")
    await eventually(lambda: _known(running.replica.index, "alice", "complete"), "the replica knows")
    return running


async def test_a_lab_is_extended_within_bounds(world: PortalWorld) -> None:
    running = await _of_alice(world)
    before = await _end(world)
    assert await running.replica.requests.extend("alice", "alice", 1800) == before + 1800
    await world.admin.until(world.pod("alice"), lambda pod: _end_of(pod) == before + 1800)
    with pytest.raises(Rejected) as error:
        await running.replica.requests.extend("alice", "alice", 4000)
    assert error.value.rejection.grounds is Grounds.INVALID_BODY
    with pytest.raises(Rejected) as error:
        await running.replica.requests.extend("bob", "bob", 60)
    assert error.value.rejection.grounds is Grounds.UNKNOWN_USER


async def test_two_who_extend_a_lab_at_once_both_do(world: PortalWorld) -> None:
    running = await _of_alice(world)
    before, requests = await _end(world), running.replica.requests
    ends = await asyncio.gather(*(requests.extend("alice", by, 600) for by in ("alice", "teacher", "alice")))
    assert sorted(ends) == [before + 600, before + 1200, before + 1800]
    await world.admin.until(world.pod("alice"), lambda pod: _end_of(pod) == before + 1800)


async def test_a_lab_that_ended_is_cleared_away(world: PortalWorld) -> None:
    running, name = await world.replica(), await world.define()
    await ask(world, running, "alice", name)
    await world.until_phase("alice", "complete")
    await world.stage.ready(world.pod("alice"), state="False", phase="Succeeded")
    await world.until_gone("alice")
    await world.until_unlocked()


async def test_times_are_kept(world: PortalWorld) -> None:
    """A lab that does not start fails, and its record goes after a time."""
    ahead = [0.0]
    running = await world.replica(wall_ahead_s=lambda: ahead[0], VKPROVIDER_PORTAL_START_TIMEOUT_SECONDS="600")
    name = await world.define()
    world.stage.boots = False
    await ask(world, running, "alice", name)
    await world.admin.until(world.pod("alice"), bool)
    await eventually(lambda: _has_pod(running.replica.index, "alice"), "the replica knows the Pod")
    ahead[0] = 601.0
    running.replica.queue.add("nublado-alice")
    assert (await world.until_phase("alice", "failed"))["reason"] == "StartTimedOut"
    await world.admin.until_gone(world.pod("alice"))
    ahead[0] += 3601.0
    running.replica.queue.add("nublado-alice")
    await world.until_gone("alice")


@pytest.mark.parametrize("opened", [False, True])
async def test_a_lab_that_nobody_opens_goes_back(world: PortalWorld, *, opened: bool) -> None:
    ahead = [0.0]
    running = await world.replica(wall_ahead_s=lambda: ahead[0], VKPROVIDER_PORTAL_IDLE_SECONDS="900")
    name, exposed = await world.define(), await world.define(expose={"mux": "mux"})
    await ask(world, running, "alice", name)
    await ask(world, running, "bob", exposed)
    await world.until_phase("alice", "complete")
    await world.until_phase("bob", "complete")
    if opened:
        note = {"vkprovider.io/last-activity": "2026-11-26T12:00:00Z"}
        await world.stage.report(world.pod("alice"), note)
        await eventually(lambda: _opened(running.replica.index, "alice"), "the replica knows")
    ahead[0] = 901.0
    for user in ("alice", "bob"):
        running.replica.queue.add(f"nublado-{user}")
    if opened:
        await ask(world, running, "carol", name)
        await world.until_phase("carol", "complete")
        assert await world.note("alice", "ending") is None
    else:
        await world.until_gone("alice")
    assert await world.note("bob", "ending") is None


async def test_labs_start_a_few_at_a_time(world: PortalWorld) -> None:
    """In the order of their requests, which are told by whole seconds."""
    running, name = await world.replica(VKPROVIDER_PORTAL_STARTS_MAX="1"), await world.define()
    world.stage.boots = False
    users = ["alice", "bob", "carol"]
    await ask(world, running, "alice", name)
    await world.admin.until(world.pod("alice"), lambda pod: pod["spec"].get("nodeName"))
    for user in users[1:]:
        await ask(world, running, user, name)
    index = running.replica.index
    await eventually(lambda: _queued(index, users[1:], [1, 2]), "both are in line")
    for number in (1, 2, 3):
        await eventually(lambda number=number: _pods(world, number), "the next one starts")  # type: ignore[misc]
        [starting] = [pod for pod in await world.pods() if pod["status"]["phase"] == "Pending"]
        user = starting["metadata"]["labels"]["vkprovider.io/user"]
        await world.admin.until(world.pod(user), lambda pod: pod["spec"].get("nodeName"))
        assert len(await world.pods()) == number
        await world.stage.ready(world.pod(user))
        await world.until_phase(user, "complete")


async def test_a_lab_that_is_being_made_can_be_deleted(world: PortalWorld) -> None:
    running, name = await world.replica(), await world.define()
    world.stage.boots = False
    await ask(world, running, "alice", name)
    await running.replica.requests.delete("alice", "alice")
    await world.until_gone("alice")
    await world.until_unlocked()
    assert await world.pods() == []


async def _known(index: UserLabIndex, user: str, phase: str) -> bool:
    lab = index.lab(user)
    return lab is not None and lab.record.outcome is not None and lab.record.outcome.phase == phase


async def _has_pod(index: UserLabIndex, user: str) -> bool:
    lab = index.lab(user)
    return lab is not None and lab.own_pod is not None


async def _opened(index: UserLabIndex, user: str) -> bool:
    lab = index.lab(user)
    return lab is not None and lab.opened


async def _queued(index: UserLabIndex, users: list[str], places: list[int]) -> bool:
    return sorted(index.queued(user) or 0 for user in users) == places


async def _pods(world: PortalWorld, number: int) -> bool:
    return len(await world.pods()) == number


async def _end(world: PortalWorld) -> float:
    return _end_of(await world.admin.get(world.pod("alice")) or {})


def _end_of(pod: Json) -> float:
    return unix(pod["metadata"]["annotations"]["vkprovider.io/timeslot-end"]) or 0.0
