"""What would become of a list if it were given now: a pure function, by the decisions of `ledger`.

A command shows it with `--dry-run`, and the page of a class before anything is given.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from vkprovider.classroom.deployments import scale_command
from vkprovider.classroom.ledger import DeploymentPool, having_in, is_free_in, outcome
from vkprovider.classroom.pods import HINDRANCES_MAX, Assignment, LabletPod
from vkprovider.classroom.roster import look_alikes
from vkprovider.lablet.shownname import with_name
from vkprovider.platform.messages import count, listed, sentences

_NAMED_MAX: Final = 8
"""The most learners that a sentence names."""


class GivingPreview(msgspec.Struct, frozen=True):
    """What becomes of a list.

    Attributes:
        pool: The name of the Deployment.
        replicas: How many free lablets it is to have now.
        free: How many it has.
        keeps: Learners who have a lablet already, each with its Pod.
        gets: Learners who get one.
        lacks: Learners for whom there is none.
        add: By how many lablets the pool is too small for all of them; 0 if those that boot are enough.
        why: Why the other lablets of the pool are not free.
        alike: Names that differ in case only; the second of each is a learner of the list.
        shown: Learner: the name by which people know them, of those who have one.
        renamed: Whether somebody who has a lablet gets another such name.
    """

    pool: str
    replicas: int
    free: int
    keeps: tuple[tuple[str, str], ...] = ()
    gets: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    add: int = 0
    why: str = ""
    alike: tuple[tuple[str, str], ...] = ()
    shown: Mapping[str, str] = {}
    renamed: bool = False

    @property
    def number(self) -> int:
        """How many learners are on the list."""
        return len(self.keeps) + len(self.gets) + len(self.lacks)

    @property
    def summary(self) -> str:
        """Who gets what, in numbers: `24 names, 19 free: 5 lack one: add 5`."""
        text = f"{count(self.number, 'name')}, {self.free} free"
        parts = [f"{len(self.keeps)} {'has' if len(self.keeps) == 1 else 'have'} one already"] if self.keeps else []
        if self.lacks:
            short = f"{len(self.lacks)} {'lacks' if len(self.lacks) == 1 else 'lack'} one"
            parts.append(f"{short}: add {self.add}" if self.add else f"{short} until more of the pool are ready")
        else:
            idle = "names change" if self.renamed else "nothing changes"
            parts.append("everybody has one then" if self.gets else idle)
        return f"{text}: {', '.join(parts)}"

    @property
    def same_names(self) -> str:
        """The names that differ in case only, as a sentence; "" if there are none."""
        if not self.alike:
            return ""
        pairs = listed([f"{one} and {other}" for one, other in self.alike], _NAMED_MAX)
        return f"{pairs} differ in case only, and are different people to the cluster"

    def lines(self, namespace: str) -> list[str]:
        """Return all of it as lines, for who reads them on a terminal."""
        found = [self.summary]
        found += [f"has one: {self._called(learner, pod)}" for learner, pod in self.keeps]
        found += [f"gets one: {self._called(learner)}" for learner in self.gets]
        found += [f"lacks one: {self._called(learner)}" for learner in self.lacks]
        if self.lacks and self.why:
            found.append(f"not free: {self.why}")
        if self.add:
            found.append(f"to add {self.add}: {scale_command(self.pool, namespace, self.replicas + self.add)}")
        return [*found, *([self.same_names] if self.alike else [])]

    def _called(self, learner: str, pod: str = "") -> str:
        return with_name(learner, "; ".join(each for each in (self.shown.get(learner, ""), pod) if each))


def preview_of(
    pool: DeploymentPool, pods: Sequence[LabletPod], wishes: Sequence[Assignment], *, refill: bool
) -> GivingPreview:
    """Return what would become of a list; for the arguments see `ledger.next_step`."""
    having = having_in(pool, pods)
    missing = [wish.user for wish in wishes if wish.user not in having]
    free = sum(is_free_in(pool, pod) for pod in pods)
    lacks, others = missing[free:], [pod for pod in pods if not is_free_in(pool, pod)]
    room = pool.replicas and refill  # a pool that makes new ones for those that are given
    return GivingPreview(
        pool=pool.name,
        replicas=pool.replicas,
        free=free,
        keeps=tuple((wish.user, having[wish.user].metadata.name) for wish in wishes if wish.user in having),
        gets=tuple(missing[:free]),
        lacks=tuple(lacks),
        add=0 if room or not lacks else max(0, len(missing) - pool.replicas),
        why=sentences(outcome(pool, others, ()).hindrances, HINDRANCES_MAX) if lacks else "",
        alike=tuple(strangely_alike((wish.user for wish in wishes), pods)),
        shown={wish.user: wish.shown for wish in wishes if wish.shown},
        renamed=any(wish.shown and wish.user in having and having[wish.user].shown != wish.shown for wish in wishes),
    )


def strangely_alike(learners: Iterable[str], pods: Iterable[LabletPod]) -> list[tuple[str, str]]:
    """Return names of a list that differ in case only from each other, or from who has a lablet: typos, as a rule."""
    having = {pod.user for pod in pods if pod.is_lablet and pod.user and not pod.over}
    return look_alikes([learner for learner in learners if learner not in having], having)
