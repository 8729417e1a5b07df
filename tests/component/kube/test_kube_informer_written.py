"""What a process has written is shown until its watch or a list shows it, and never longer than it exists."""

import msgspec

from tests.component.kube.conftest import until
from tests.component.kube.pods import Pods, following
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.informer import ALERT
from vkprovider.platform.objects import Pod


def written(pods: Pods, name: str) -> Pod:
    """Return a Pod as the answer to its last write had it."""
    return msgspec.convert(pods.found[name], Pod)


async def test_a_written_object_is_shown_while_the_watch_is_silent(pods: Pods, client: KubeClient) -> None:
    async with following(client, pods, inactivity_s=0.5, patience=ALERT) as (informer, heard):
        pods.api.swallow_watches()
        await pods.add("a")
        informer.wrote(written(pods, "a"))
        assert heard.changes == [(None, "a")]
        await until(lambda: informer.relists_total >= 2)
        assert (set(informer.items), heard.changes) == (pods.keys("a"), [(None, "a")])
        await pods.remove("a")
        await until(lambda: not informer.items)


async def test_a_late_watch_shows_nothing_older_and_everything_later(pods: Pods, client: KubeClient) -> None:
    async with following(client, pods) as (informer, heard):
        pods.api.silence_watches()
        await pods.add("a")
        await pods.change("a", step="1")
        await pods.change("a", step="2")
        informer.wrote(written(pods, "a"))
        assert heard.changes == [(None, "a")]
        await pods.add("b")
        pods.api.heal()
        await until(lambda: informer.items.keys() == pods.keys("a", "b"))
        assert heard.changes == [(None, "a"), (None, "b")], "the events of its creation and first change are old"
        await pods.change("a", step="3")
        await until(lambda: informer.items[pods.key("a")].metadata.labels["step"] == "3")
        await pods.remove("a")
        await until(lambda: informer.items.keys() == pods.keys("b"))


async def test_what_the_watch_has_passed_is_not_shown_again(pods: Pods, client: KubeClient) -> None:
    """Its deletion by another arrives before the answer to our write."""
    await pods.add("a")
    late = written(pods, "a")
    async with following(client, pods) as (informer, heard):
        await pods.remove("a")
        await until(lambda: heard.changes == [(None, "a"), ("a", None)])
        informer.wrote(late)
        assert not informer.items


async def test_a_list_that_began_before_the_write_does_not_hide_it(pods: Pods, client: KubeClient) -> None:
    """And one whose answer is newer hides what is gone again."""
    async with following(client, pods) as (informer, heard):
        lists = len(pods.lists())

        async def meanwhile() -> None:
            await pods.add("a")
            await pods.add("b")
            informer.wrote(written(pods, "a"))
            informer.wrote(written(pods, "b"))

        pods.api.fault("limit=", then=meanwhile)
        pods.refuse_watch(410)
        await until(lambda: informer.relists_total == 1)
        assert len(pods.lists()) == lists + 1
        assert set(informer.items) == pods.keys("a", "b")
        await pods.remove("b")
        await until(lambda: informer.items.keys() == pods.keys("a"))
        assert heard.changes == [(None, "a"), (None, "b"), ("b", None)]


async def test_a_store_whose_versions_are_no_numbers_takes_nothing(pods: Pods, client: KubeClient) -> None:
    async with following(client, pods) as (informer, _):
        await pods.add("a")
        await until(lambda: len(informer.items) == 1)
        strange = msgspec.structs.replace(written(pods, "a").metadata, name="x", resource_version="v9")
        informer.wrote(msgspec.structs.replace(written(pods, "a"), metadata=strange))
        assert set(informer.items) == pods.keys("a")
