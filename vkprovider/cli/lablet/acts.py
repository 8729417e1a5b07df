"""`kubectl lablet stop`, `start`, `collect`, `hand-in`, `reset`, `message`: requests, written as annotations of Pods.

Who may not change the Pod, as a learner, asks the provider for `hand-in` and `reset` in the container of the lablet.
"""

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import click

from vkprovider.classroom.archives import by_learner
from vkprovider.classroom.pods import LabletPod
from vkprovider.cli.lablet.console import kubectl_command
from vkprovider.cli.lablet.handedin import LISTING, entries_or_why, grade_of
from vkprovider.cli.shared import clock
from vkprovider.cli.shared.batch import Chosen
from vkprovider.cli.shared.output import ProgressLine
from vkprovider.cli.shared.page.archives import open_archives
from vkprovider.cli.shared.page.options import PageOptions
from vkprovider.cli.shared.place import Place
from vkprovider.cli.shared.pods import ask, check_alive, check_not_collecting, exec_arguments, wait_for
from vkprovider.cli.shared.times import local
from vkprovider.lablet import names
from vkprovider.lablet.archives import ArchiveEntry, lasting_id
from vkprovider.lablet.deviceacts import DeviceAct
from vkprovider.lablet.inputs import CHARS_MAX, annotation_for
from vkprovider.lablet.shownname import by_last_name, with_name
from vkprovider.lablet.standing import State, state_of
from vkprovider.platform.errors import Forbidden
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.messages import count, listed
from vkprovider.platform.times import iso


def stop(*, wait: bool, timeout_s: int, chosen: Chosen) -> None:
    """Stop the lab of each POD and keep its disks, for 24 hours at most."""

    def request(pod: LabletPod) -> Mapping[str, str | None]:
        check_alive(pod)
        check_not_collecting(pod)
        return {names.ANNOTATION_DESIRED_STATE: str(State.STOPPED)}

    async def work(kube: KubeClient, pod: LabletPod, progress: ProgressLine) -> str:
        await ask(kube, pod, request)
        if wait:
            await wait_for(
                kube,
                pod,
                lambda now: _is_in(now, State.STOPPED),
                timeout_s=timeout_s,
                what="stopped",
                progress=progress,
            )
        name = pod.metadata.name
        return f"pod/{name} {'stopped' if wait else 'is being stopped'}; go on with: kubectl lablet start {name}"

    chosen.each(work)


def start(*, wait: bool, timeout_s: int, chosen: Chosen) -> None:
    """Start the lab of each POD again after `stop`; its disks are as they were."""

    def request(pod: LabletPod) -> Mapping[str, str | None]:
        check_alive(pod)
        check_not_collecting(pod)
        return {names.ANNOTATION_DESIRED_STATE: None} if _is_stopped(pod) else {}

    async def work(kube: KubeClient, pod: LabletPod, progress: ProgressLine) -> str:
        name = pod.metadata.name
        if not request(pod):
            return f"pod/{name} was not stopped on request"
        await ask(kube, pod, request)
        if wait:
            await wait_for(
                kube,
                pod,
                lambda now: now is not None and now.runs and not _is_in(now, State.STOPPED),
                timeout_s=timeout_s,
                what="ready",
                progress=progress,
            )
        return f"pod/{name} {'started' if wait else 'is being started'}"

    chosen.each(work)


def collect(*, yes: bool, wait: bool, timeout_s: int, page: PageOptions, chosen: Chosen) -> None:
    """End the learner's time with each POD now: collect the work, have it graded, end the lablet."""
    ends: list[tuple[LabletPod, LabletPod | None]] = []
    earlier: list[ArchiveEntry] = []

    async def look_before(kube: KubeClient, namespace: str) -> None:
        earlier.extend((await entries_or_why(kube, namespace, chosen.place, page))[0])

    async def show(kube: KubeClient, namespace: str) -> None:
        now: list[ArchiveEntry] = []
        if any(over is None or not over.ended for _, over in ends):
            now, why = await entries_or_why(kube, namespace, chosen.place, page)
            if why:
                click.echo(f"The grades of lablets that go back to a pool are not known: {why}", err=True)
        grades = [grade_of(pod, over, earlier, now) for pod, over in sorted(ends, key=lambda end: _by_name(end[0]))]
        LISTING.show(grades, "table", nothing="No lablet has come to its end.", but=("WHEN",))

    async def work(kube: KubeClient, pod: LabletPod, progress: ProgressLine) -> str:
        await ask(kube, pod, _collection)
        if not wait:
            return f"pod/{pod.metadata.name} is being collected"
        over = await wait_for(kube, pod, _is_over, timeout_s=timeout_s, what="at its end", progress=progress)
        ends.append((pod, over))
        return _end_of(pod, over)

    chosen.each(
        work,
        check=lambda pods: _confirm_end(pods, "collect", yes=yes),
        concerns=lambda pod: not pod.is_free,
        before=look_before if wait and not chosen.names else None,
        after=show if wait else None,
    )


def hand_in(*, yes: bool, wait: bool, timeout_s: int, chosen: Chosen) -> None:
    """Hand in the work of each POD: the learner's time with it ends now."""

    async def work(kube: KubeClient, pod: LabletPod, progress: ProgressLine) -> str:
        check_alive(pod)
        if not pod.user:
            raise click.ClickException(f"pod/{pod.metadata.name} has no learner, and so nothing to hand in")
        await _ask(kube, pod, names.HAND_IN, _collection, chosen.place)
        if not wait:
            return f"pod/{pod.metadata.name}: the work of {pod.user} is handed in, and is being collected"
        return _end_of(
            pod, await wait_for(kube, pod, _is_over, timeout_s=timeout_s, what="at its end", progress=progress)
        )

    chosen.each(
        work, check=lambda pods: _confirm_end(pods, names.HAND_IN, yes=yes), concerns=lambda pod: bool(pod.user)
    )


def _collection(pod: LabletPod) -> Mapping[str, str | None]:
    """Return the request that ends a learner's time.

    Raises:
        ClickException: The lablet has ended.
    """
    check_alive(pod)
    return {names.ANNOTATION_DESIRED_STATE: str(State.COLLECTING)}


_Request = Callable[[LabletPod], Mapping[str, str | None]]
"""Returns the annotations of a request to a Pod as it is; raises ClickException if it cannot do it."""


async def _ask(kube: KubeClient, pod: LabletPod, word: str, request: _Request, place: Place) -> None:
    """Write a request on a Pod; or have the provider write it, for who may open its consoles and not change it.

    Raises:
        ClickException: Neither was possible, and the text has both reasons; or it is another learner's now.
    """
    try:
        await ask(kube, pod, request)
    except Forbidden as refusal:
        code, text = await _have_done(pod, [word], place)
        if code:
            why = f"{refusal.message}; and as its learner: {text}"
            raise click.ClickException(f"pod/{pod.metadata.name}: {why}") from None


async def _have_done(pod: LabletPod, words: Sequence[str], place: Place) -> tuple[int, str]:
    """Have the provider do what may be asked in the container of a lablet; return the exit code, and what it said."""
    process = await asyncio.create_subprocess_exec(
        *kubectl_command(place, exec_arguments(pod, [*words, "--yes"])),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    return process.returncode or 0, " ".join(said.decode(errors="replace").split())


def device(act: str, device: str, *, yes: bool, chosen: Chosen) -> None:
    """Start, stop, restart or wipe one device of each POD."""
    asked = DeviceAct(act)

    def confirm(pods: Sequence[LabletPod]) -> None:
        question = asked.question(device)
        if yes or not pods or not question:
            return
        if not sys.stdin.isatty():
            raise click.UsageError(f"{question} There is no terminal to confirm that: add --yes")
        where = f"pod/{pods[0].metadata.name}" if len(pods) == 1 else count(len(pods), "lab")
        click.confirm(f"In {where}: {question}", abort=True)

    async def work(kube: KubeClient, pod: LabletPod, _: ProgressLine) -> str:  # noqa: ARG001 (kubectl does it)
        check_alive(pod)
        code, text = await _have_done(pod, [names.DEVICE, asked, device], chosen.place)
        if code:
            raise click.ClickException(f"pod/{pod.metadata.name}: {text}")
        return f"pod/{pod.metadata.name}: {text}"

    chosen.each(work, check=confirm)


def message(text: str | None, *, chosen: Chosen) -> None:
    """Tell the learner of each POD something."""
    if text is None:
        raise click.UsageError('say what: -m "We go on at 14:00."')
    if len(text) > CHARS_MAX:
        raise click.UsageError(f"a message has {CHARS_MAX} characters at most, and this one {len(text)}")
    notes = annotation_for(text, clock.now().timestamp())
    removed = notes[names.ANNOTATION_MESSAGE] is None

    async def work(kube: KubeClient, pod: LabletPod, _: ProgressLine) -> str:
        check_alive(pod)
        if not pod.user:
            raise click.ClickException(f"pod/{pod.metadata.name} has no learner who could read it")
        await ask(kube, pod, lambda _: notes)
        return f"pod/{pod.metadata.name}: {pod.user} has {'no message any more' if removed else 'the message'}"

    chosen.each(work, concerns=lambda pod: bool(pod.user))


def _by_name(pod: LabletPod) -> tuple[str, str, str]:
    return by_last_name(pod.user, pod.shown)


def _end_of(pod: LabletPod, over: LabletPod | None) -> str:
    """Return how a lablet that was collected ended.

    Raises:
        ClickException: It failed.
    """
    name = pod.metadata.name
    if over is None:
        return f"pod/{name} is gone; see: kubectl lablet configs {pod.metadata.uid}"
    if not over.ended:
        return f"pod/{name} was collected and goes back to its pool"
    said = next((s.state["terminated"] for s in over.status.container_statuses if "terminated" in s.state), {})
    message = f"pod/{name} {over.status.phase}: {said.get('message', '')}"
    if over.status.phase == "Failed":
        raise click.ClickException(f"{message}; for what was collected: kubectl lablet configs {name}")
    return message


def _is_over(pod: LabletPod | None) -> bool:
    """Return whether the learner's time is over: at the end, or without a learner on the way back to the pool."""
    return pod is None or pod.ended or names.ANNOTATION_DESIRED_STATE not in pod.metadata.annotations


def reset(*, saved: bool, yes: bool, wait: bool, timeout_s: int, page: PageOptions, chosen: Chosen) -> None:
    """Wipe the lab of each POD and start it again: all work in it is lost."""
    kept: dict[str, list[ArchiveEntry]] = {}

    async def look(kube: KubeClient, namespace: str) -> None:
        async with open_archives(kube, namespace, chosen.place, page) as archives:
            kept.update(by_learner(await archives.list()))

    async def work(kube: KubeClient, pod: LabletPod, progress: ProgressLine) -> str:
        name = pod.metadata.name
        asked: Mapping[str, str | None] = {names.ANNOTATION_RESET: clock.now().isoformat()}
        begins = ""

        def request(now: LabletPod) -> Mapping[str, str | None]:
            check_alive(now)
            check_not_collecting(now)
            return {**asked, names.ANNOTATION_DESIRED_STATE: None} if _is_stopped(now) else asked

        request(pod)
        if saved:
            if (entry := _saved_for(pod, kept.get(pod.user, ()))) is None:
                why = f"nothing of {pod.user or 'a learner'} is kept of {pod.spec.runtime_class_name}; the lab is left"
                if chosen.names:
                    raise click.ClickException(f"pod/{name}: {why}")
                return f"pod/{name}: {why}"
            asked = {**asked, names.ANNOTATION_BEGIN_FROM: lasting_id(entry.id, entry.at)}
            when = local(iso(entry.at), clock.now())
            begins = f"; it begins from what {pod.user} left {when}"
        await (ask(kube, pod, request) if saved else _ask(kube, pod, names.RESET, request, chosen.place))
        if wait:
            await wait_for(
                kube,
                pod,
                lambda now: now is not None and now.runs and now.last_ends != pod.last_ends,
                timeout_s=timeout_s,
                what="reset",
                progress=progress,
            )
        return f"pod/{name} {'was' if wait else 'is being'} wiped and started again{begins}"

    chosen.each(
        work,
        check=lambda pods: _confirm(pods, yes=yes),
        concerns=lambda pod: bool(pod.user) or not saved,
        before=look if saved else None,
    )


def _saved_for(pod: LabletPod, kept: Sequence[ArchiveEntry]) -> ArchiveEntry | None:
    """Return what a lablet is to begin from: what its learner left last of its definition; None if nothing is kept.

    Where it was told before, that stays: what the lab had before it was wiped for it is newer, and nobody's work.

    Args:
        pod: The lablet's.
        kept: What its learner left, the newest first.
    """
    theirs = [entry for entry in kept if entry.definition == pod.spec.runtime_class_name]
    told = pod.metadata.annotations.get(names.ANNOTATION_BEGIN_FROM)
    return next((entry for entry in theirs if lasting_id(entry.id, entry.at) == told), next(iter(theirs), None))


def _confirm(pods: Sequence[LabletPod], *, yes: bool) -> None:
    if yes:
        return
    if len(pods) == 1:
        check_alive(pods[0])
        check_not_collecting(pods[0])
    if not sys.stdin.isatty():
        raise click.UsageError("reset wipes a lab, and there is no terminal to confirm that: add --yes")
    if len(pods) == 1:
        whose = f", where {pods[0].user} may have worked" if pods[0].user else ""
        question = f"Wipe the lab of pod/{pods[0].metadata.name}{whose}, and start it again?"
    else:
        learners = sum(bool(pod.user) for pod in pods)
        question = f"Wipe {count(len(pods), 'lab')}, {learners} of them with a learner, and start them again?"
    click.confirm(question, abort=True)


_NAMED_MAX: Final = 5
"""How many learners a question names."""


def _confirm_end(pods: Sequence[LabletPod], command: str, *, yes: bool) -> None:
    """Ask before learners' time ends, which cannot be taken back."""
    if yes or not pods:
        return
    if len(pods) == 1:
        check_alive(pods[0])
    if not sys.stdin.isatty():
        raise click.UsageError(f"{command} ends a learner's time, and there is no terminal to confirm that: add --yes")
    learners = [with_name(pod.user, pod.shown) for pod in sorted(pods, key=_by_name) if pod.user]
    if len(pods) == 1:
        whose = f"the time of {learners[0]} with" if learners else "the lablet of"
        question = f"End {whose} pod/{pods[0].metadata.name} now? The work is collected, and the lab ends."
    else:
        who = f" of {listed(learners, _NAMED_MAX)}" if learners else ""
        question = f"End {count(len(pods), 'lablet')}{who} now? The work is collected, and the labs end."
    click.confirm(question, abort=True)


def _is_stopped(pod: LabletPod) -> bool:
    return pod.metadata.annotations.get(names.ANNOTATION_DESIRED_STATE, "").upper() == State.STOPPED


def _is_in(pod: LabletPod | None, state: State) -> bool:
    return pod is not None and state_of(pod) == state
