"""A link for each learner of a class, for people who have no account of the cluster.

A link is an address of the portal with a code behind `#`, which no browser sends to anybody; the page there posts it.

    code           NAMESPACE.ID.SECRET, such as `friday.fpmansl7byak6gq7.…`: 26 random characters of 5 bits each
    account        ServiceAccount `vkprovider-link-ID`, whose ID is made of the learner's name: it acts in the cluster
    link-hash      its annotation: the sum of the code, for a code of that many bits needs no salt and no slow sum
    link-pod       its annotation: the Pod that the link leads to, and its UID

The account has no right of its own. Where a Pod is assigned to the learner, the RoleBinding of the assignment names the
account beside the learner (`access`), so that a link opens what the learner may open, until the assignment ends. It is
no Pod's: when a lablet is gone while the learner's time goes on, and the learner gets another one, the link leads
there. A guest of a lablet (`sharing`) has an account for that lablet alone, beside one for an own lablet. Both end with
the time: the provider deletes the accounts when it takes the lablet back, and who assigns deletes those whose lablet
has ended. All of it is written by whoever assigns, with the own rights, and the policy `vkprovider-links` keeps an
instructor to this form (`manifests/base/instructors.yaml`).
"""

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from vkprovider.classroom.pods import LabletPod, pods_in
from vkprovider.lablet import names
from vkprovider.platform.concurrency import at_most
from vkprovider.platform.errors import Conflict, Forbidden, NotFound, OutsideError
from vkprovider.platform.kube.api import SERVICE_ACCOUNTS
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.resources import PartialObject, Resource
from vkprovider.platform.messages import listed
from vkprovider.platform.objects import Metadata

_LABELS: Final = f"{names.LABEL_COMPONENT}={names.COMPONENT_LINK}"
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz234567"
_SECRET_CHARS: Final = 26
"""130 bits."""
_CODE: Final = re.compile(rf"([a-z0-9](?:[a-z0-9-]{{0,61}}[a-z0-9])?)\.([{_LETTERS}]{{16}})\.([{_LETTERS}]{{26}})")
_AT_ONCE: Final = 8
NAMED_MAX: Final = 5
"""How many learners one sentence names."""


class LinkCode(NamedTuple):
    """What a link is opened with.

    Attributes:
        namespace: Of the class.
        account: The name of the ServiceAccount.
        secret: What nobody else knows.
    """

    namespace: str
    account: str
    secret: str

    @property
    def text(self) -> str:
        """The code as it stands behind `#`, and is typed."""
        return f"{self.namespace}.{self.account.removeprefix(names.LINK_PREFIX)}.{self.secret}"

    @property
    def digest(self) -> str:
        """The sum that is stored, and tells nothing of the secret."""
        return hashlib.sha256(f"vkprovider-link {self.text}".encode()).hexdigest()


def new_code(namespace: str, learner: str, pod_uid: str = "") -> LinkCode:
    """Return a code that nobody knows yet; of a guest's link it names the Pod, too."""
    secret = "".join(secrets.choice(_LETTERS) for _ in range(_SECRET_CHARS))
    return LinkCode(namespace, names.link_account(learner, pod_uid), secret)


def read_code(text: str) -> LinkCode | None:
    """Return the code that somebody has typed, in letters of any size and with blanks; None if it can be none."""
    found = _CODE.fullmatch("".join(text.split()).lower())
    return LinkCode(found[1], names.LINK_PREFIX + found[2], found[3]) if found else None


class LinkAccount(NamedTuple):
    """The ServiceAccount of a link.

    Attributes:
        metadata: As it was read.
        learner: Whose link it is.
        digest: The sum of the code that opens it.
        pod: The name of the Pod that the link leads to.
        pod_uid: The UID of that Pod.
    """

    metadata: Metadata
    learner: str
    digest: str
    pod: str
    pod_uid: str

    @property
    def is_guests(self) -> bool:
        """Whether it leads a guest to a lablet of somebody else, and never elsewhere."""
        return self.metadata.name == names.link_account(self.learner, self.pod_uid)

    @property
    def is_whole(self) -> bool:
        """Whether its name is made of what it says."""
        return self.is_guests or self.metadata.name == names.link_account(self.learner)

    def admits_to(self, pod: LabletPod) -> bool:
        """Return whether its learner is a Pod's, or, of a guest's link, is a guest there."""
        return self.learner in pod.guests if self.is_guests else self.learner == pod.user

    def is_opened_by(self, digest: str) -> bool:
        """Return whether a sum is that of the code, in a time that does not tell how much of it is right."""
        return bool(self.digest) and hmac.compare_digest(self.digest.encode(), digest.encode(errors="replace"))

    def has_ended(self, pods: Mapping[str, LabletPod]) -> bool:
        """Return whether the learner's time with the Pod is over; a Pod that is gone may be replaced by another one.

        That of a guest is not: it ends with the Pod.

        Args:
            pods: Those of the namespace by UID, read after the account.
        """
        pod = pods.get(self.pod_uid)
        return self.is_guests if pod is None else pod.ended or not self.admits_to(pod)


def account_of(found: PartialObject) -> LinkAccount:
    """Return the account of a link, as the API server has it; what it does not say is ""."""
    notes = found.metadata.annotations
    learner, digest = notes.get(names.ANNOTATION_USERNAME, ""), notes.get(names.ANNOTATION_LINK_HASH, "")
    return LinkAccount(found.metadata, learner, digest, *names.link_target(notes))


def account_for(code: LinkCode, pod: LabletPod, guest: str = "") -> dict[str, Any]:
    """Return the ServiceAccount of a link to a Pod, of its learner or of a guest."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {
            "name": code.account,
            "namespace": code.namespace,
            "labels": {names.LABEL_COMPONENT: names.COMPONENT_LINK},
            "annotations": {
                names.ANNOTATION_USERNAME: guest or pod.user,
                names.ANNOTATION_LINK_HASH: code.digest,
                names.ANNOTATION_LINK_POD: _target(pod),
            },
        },
        "automountServiceAccountToken": False,
    }


def _target(pod: LabletPod) -> str:
    return f"{pod.metadata.name}/{pod.metadata.uid}"


class LinkRound(NamedTuple):
    """What became of the links of some learners.

    Attributes:
        codes: Those that were made now, by learner; nobody can read them again.
        kept: Who has a link already, which leads to the lablet from now on.
        left: Pods that links of these learners led to before.
        faults: Why there are no links: sentences.
    """

    codes: Mapping[str, LinkCode] = {}
    kept: tuple[str, ...] = ()
    left: tuple[LabletPod, ...] = ()
    faults: tuple[str, ...] = ()


def accounts_in(kube: KubeClient, namespace: str) -> Resource[PartialObject]:
    """Return the ServiceAccounts of a namespace, reduced to their metadata."""
    return Resource(kube, SERVICE_ACCOUNTS, namespace).metadata_only


async def links_in(kube: KubeClient, namespace: str) -> dict[str, LinkAccount]:
    """Return the links of a class, by learner; those of guests are left out.

    Raises:
        OutsideError: They cannot be listed.
    """
    return {each.learner: each for each in await all_links_in(kube, namespace) if not each.is_guests}


async def all_links_in(kube: KubeClient, namespace: str) -> list[LinkAccount]:
    """Return the links of a class, with those of guests.

    Raises:
        OutsideError: They cannot be listed.
    """
    found = [account_of(each) for each in await accounts_in(kube, namespace).list(labels=_LABELS)]
    return [each for each in found if each.is_whole]


async def make_links(kube: KubeClient, namespace: str, pods: Sequence[LabletPod], *, again: bool = False) -> LinkRound:
    """Give each learner a link to the own lablet, unless the learner has one; `access.open_access` lets it in.

    Args:
        kube: The API server, with the rights of whoever assigns.
        namespace: Of the Pods.
        pods: As they were given; one without a learner is left out.
        again: Make all links again: those that learners have open nothing any more.

    Raises:
        OutsideError: What there is cannot be listed; nothing was made. What fails later is told with what was made.
    """
    given = {pod.user: pod for pod in pods if pod.user and not pod.over}
    if not given:
        return LinkRound()
    accounts = accounts_in(kube, namespace)
    try:
        standing = await links_in(kube, namespace)
        living = {pod.metadata.uid: pod for pod in await pods_in(kube, namespace).list()}
    except Forbidden as error:
        return LinkRound(faults=(_refused(error, namespace),))
    codes: dict[str, LinkCode] = {}
    unmade: dict[str, OutsideError] = {}

    async def make(learner: str) -> None:
        there, pod = standing.get(learner), given[learner]
        if there is not None and not again and not there.has_ended(living):
            await _lead(accounts, there, pod)
            return
        if there is not None:
            await accounts.delete(there.metadata.name, uid=there.metadata.uid)
        code = new_code(namespace, learner)
        try:
            await accounts.create(account_for(code, pod))
        except Conflict:
            return  # somebody else makes it, and hands it out
        codes[learner] = code

    async def make_or_note(learner: str) -> None:
        try:
            await make(learner)
        except OutsideError as error:  # the codes of the others can be read only once
            unmade[learner] = error

    await at_most(_AT_ONCE, make_or_note, given)
    left = [living[each.pod_uid] for name in given if (each := standing.get(name)) and each.pod_uid in living]
    kept = tuple(name for name in given if name not in codes and name not in unmade)
    return LinkRound(codes, kept, tuple(left), _unmade(unmade, namespace))


async def make_guest_link(kube: KubeClient, pod: LabletPod, guest: str) -> LinkRound:
    """Give a guest of a Pod a link to it, in the place of an earlier one; `access.open_access` lets it in.

    Raises:
        OutsideError: The API server did not do it.
    """
    meta = pod.metadata
    accounts, code = accounts_in(kube, meta.namespace), new_code(meta.namespace, guest, meta.uid)
    try:
        await accounts.delete(code.account)
        await accounts.create(account_for(code, pod, guest))
    except Conflict:
        return LinkRound(kept=(guest,))  # somebody else makes it, and hands it out
    except Forbidden as error:
        return LinkRound(faults=(_refused(error, meta.namespace),))
    return LinkRound({guest: code})


async def end_guest_link(kube: KubeClient, pod: LabletPod, guest: str) -> bool:
    """Delete the link of a guest to a Pod, if the caller may; return whether there was one.

    Raises:
        OutsideError: The API server did not do it.
    """
    try:
        return await accounts_in(kube, pod.metadata.namespace).delete(names.link_account(guest, pod.metadata.uid))
    except Forbidden:
        return False  # the next one who assigns deletes it


async def carried(kube: KubeClient, namespace: str, pods: Iterable[LabletPod]) -> dict[str, list[str]]:
    """Return the accounts of the links that lead to some Pods, by the Pod's UID: the learner's first.

    A link whose lablet is gone, or at the end of its learner's time, leads to the one that the learner has now; one
    whose learner's time is over is deleted.

    Raises:
        OutsideError: The API server did not do it.
    """
    try:
        every = await all_links_in(kube, namespace)
    except Forbidden:
        return {}  # the role of an earlier version, or somebody else's: then there are no links of theirs
    if not every:
        return {}
    accounts, living = accounts_in(kube, namespace), {p.metadata.uid: p for p in await pods_in(kube, namespace).list()}
    over = [each for each in every if each.has_ended(living)]
    await at_most(_AT_ONCE, lambda each: _end(accounts, each), over)
    good = [each for each in every if each not in over]
    standing = {each.learner: each for each in good if not each.is_guests}
    found: dict[str, list[str]] = {}
    for pod in pods:
        uid = pod.metadata.uid
        guests = sorted(each.metadata.name for each in good if each.is_guests and each.pod_uid == uid)
        there = standing.get(pod.user)
        target = living.get(there.pod_uid) if there is not None else None
        if there is not None and (target is None or not target.lasts):
            await _lead(accounts, there, pod)
        elif there is not None and there.pod_uid != uid:
            there = None
        found[uid] = [*([there.metadata.name] if there is not None else []), *guests]
    return found


async def take_back(kube: KubeClient, namespace: str, links: Iterable[LinkAccount]) -> None:
    """Take links back: tokens of their accounts end at once.

    Raises:
        OutsideError: The API server did not do it.
    """
    accounts = accounts_in(kube, namespace)
    await at_most(_AT_ONCE, lambda each: accounts.delete(each.metadata.name, uid=each.metadata.uid), links)


async def end_link(kube: KubeClient, pod: LabletPod) -> None:
    """Take back the link that leads to a Pod whose learner's time is over, if whoever asks may.

    Raises:
        OutsideError: The API server did not do it.
    """
    accounts = accounts_in(kube, pod.metadata.namespace)
    for guest in pod.guests:
        await end_guest_link(kube, pod, guest)
    try:
        found = await accounts.get(names.link_account(pod.user))
        if found is not None and account_of(found).pod_uid == pod.metadata.uid:
            await _end(accounts, account_of(found))
    except Forbidden:
        return  # the next one who assigns deletes it


async def _lead(accounts: Resource[PartialObject], link: LinkAccount, pod: LabletPod) -> None:
    if link.pod_uid == pod.metadata.uid:
        return
    notes = {names.ANNOTATION_LINK_POD: _target(pod)}
    try:
        await accounts.patch(link.metadata.name, {"metadata": {"annotations": notes}}, uid=link.metadata.uid)
    except NotFound:
        return  # it was taken back meanwhile


async def _end(accounts: Resource[PartialObject], link: LinkAccount) -> None:
    meta = link.metadata
    try:
        await accounts.delete(meta.name, uid=meta.uid, resource_version=meta.resource_version)
    except Conflict:
        return  # somebody leads it to another lablet


def _unmade(errors: Mapping[str, OutsideError], namespace: str) -> tuple[str, ...]:
    """Say who has no link, and why."""
    if not errors:
        return ()
    first = next(iter(errors.values()))
    if isinstance(first, Forbidden):
        return (_refused(first, namespace),)
    who = listed([*errors], NAMED_MAX)
    return (f"no link was made for {who}: {first.message}. Run the same command again",)


def _refused(error: Forbidden, namespace: str) -> str:
    return (
        f"no links were made: {error.message}. An admin allows them once: kubectl lablet grant USER -n {namespace} "
        "--links; then run the same command again"
    )
