"""Do something with one lablet, with several, or with all that a label selects."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence

import click
import msgspec

from vkprovider.classroom.pods import LabletPod, pods_in
from vkprovider.cli.shared.output import ProgressLine
from vkprovider.cli.shared.place import Place
from vkprovider.cli.shared.pods import LabletName, find_all, named
from vkprovider.cli.shared.refusals import advised
from vkprovider.platform.errors import OutsideError
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.messages import count

Work = Callable[[KubeClient, LabletPod, ProgressLine], Awaitable[str]]
"""Does it with one lablet, and returns the line to print. Raises ClickException or OutsideError if it fails."""


class Chosen(msgspec.Struct, frozen=True):
    """The lablets that a command line names, or selects.

    Attributes:
        names: Of Pods and learners.
        labels: A selector; empty if lablets are named.
        every: All lablets of the namespace.
    """

    place: Place
    names: tuple[LabletName, ...]
    labels: str = ""
    every: bool = False

    def each(
        self,
        work: Work,
        *,
        check: Callable[[Sequence[LabletPod]], None] = lambda _: None,
        concerns: Callable[[LabletPod], bool] = lambda _: True,
        before: Callable[[KubeClient, str], Awaitable[None]] | None = None,
        after: Callable[[KubeClient, str], Awaitable[None]] | None = None,
    ) -> None:
        """Do something with each lablet at once; one that fails does not keep the others from it.

        Args:
            work: What to do.
            check: Called with all of them before; raises to prevent it.
            concerns: Called for each lablet that a selector selects; those for which it returns False are left alone.
            before: Called with the namespace before anything is done.
            after: Called with the namespace when all that a selector selects is done, or has failed.

        Raises:
            ClickException: A named lablet does not exist, or the only one failed.
        """

        async def all_of_them(kube: KubeClient, namespace: str) -> int:
            if not (found := await self._find(kube, namespace, concerns)):
                return 0
            check(found)
            if before is not None:
                await before(kube, namespace)
            with ProgressLine() as progress:
                if len(found) == 1 and (after is None or self.names):
                    progress.done(_name(found[0]), await work(kube, found[0], progress))
                    return 0
                failed = sum(await asyncio.gather(*(self._one(kube, pod, progress, work) for pod in found)))
            if after is not None and not self.names:
                await after(kube, namespace)
            return failed

        if self.place.run(all_of_them):
            sys.exit(1)

    async def _find(self, kube: KubeClient, namespace: str, concerns: Callable[[LabletPod], bool]) -> list[LabletPod]:
        if self.labels or self.every:
            return await select(kube, namespace, self.labels, concerns)
        return await find_all(kube, namespace, self.names)

    async def _one(self, kube: KubeClient, pod: LabletPod, progress: ProgressLine, work: Work) -> bool:
        """Return whether it failed."""
        try:
            line = await work(kube, pod, progress)
        except click.ClickException as error:
            progress.failed(_name(pod), error.message)
        except OutsideError as error:
            progress.failed(_name(pod), f"{_name(pod)}: {advised(error, pod.metadata.namespace)}")
        else:
            progress.done(_name(pod), line)
            return False
        return True


async def select(
    kube: KubeClient, namespace: str, labels: str, concerns: Callable[[LabletPod], bool]
) -> list[LabletPod]:
    """Return the lablets that a selector selects and that a command concerns; say how many others are left alone.

    Raises:
        OutsideError: They cannot be listed.
    """
    selected = [pod for pod in await pods_in(kube, namespace).list(labels=labels) if pod.is_lablet]
    found = [pod for pod in selected if concerns(pod)]
    if alone := len(selected) - len(found):
        verb = "is" if alone == 1 else "are"
        click.echo(f"{count(alone, 'lablet')} that nobody has {verb} left alone.", err=True)
    if not selected:
        click.echo(f"No lablets found in {namespace} namespace.", err=True)
    return found


def chosen(
    pods: tuple[str, ...], learners: tuple[str, ...], selector: str, place: Place, *, every: bool = False
) -> Chosen:
    """Return the lablets that a command line names, or selects.

    Raises:
        UsageError: It does both, or neither.
    """
    named_ones = [*(named(pod, None) for pod in pods), *(named(None, learner) for learner in learners)]
    if sum(map(bool, (named_ones, selector, every))) > 1:
        raise click.UsageError("name pods and learners, or select them with -l or --all, not both")
    if not named_ones and not selector and not every:
        raise click.UsageError("name a POD, or a learner with -u, or select several with -l, such as -l class=monday")
    return Chosen(place, tuple(dict.fromkeys(named_ones)), selector, every)


def _name(pod: LabletPod) -> str:
    return f"pod/{pod.metadata.name}"
