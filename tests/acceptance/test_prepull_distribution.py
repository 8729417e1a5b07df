"""A real registry says which images Nodes are to hold (R002-068)."""

from pathlib import Path

import pytest

from tests.support.distribution import running
from vkprovider.platform.errors import NotFound
from vkprovider.portal.pure.nodeimages import ImageName
from vkprovider.prepull.config import PrepullConfig, RepositoryConfig
from vkprovider.prepull.distribution import DockerConfig
from vkprovider.prepull.passes import wanted_images
from vkprovider.prepull.registry import Registry


@pytest.mark.timeout(900)
async def test_recommended_newest_and_pinned_ones_by_their_digests(tmp_path: Path) -> None:
    with running(tmp_path, tags_max=3) as registry:
        weeks = [f"w_2026_{week}" for week in range(1, 8)]
        digests = {tag: registry.push("team/lab", tag, tag) for tag in ["r1", "r2", *weeks, "exp_a"]}
        digests["recommended"] = registry.push("team/lab", "w_2026_6", "recommended")
        assert digests["recommended"] == digests["w_2026_6"]
        name = f"{registry.host}/team/lab"
        repository = RepositoryConfig(name=name, plain_http=True, num_weeklies=2, pins=("w_2026_1",))
        config = PrepullConfig(repositories=(repository,))
        found = await wanted_images(config, DockerConfig())
        expected = {"r2", "w_2026_7", "w_2026_6", "w_2026_1", "recommended"}
        assert {image.tag: image.digest for image in found} == {tag: digests[tag] for tag in expected}
        moved = registry.push("team/lab", "another", "recommended")
        again = {image.tag: image.digest for image in await wanted_images(config, DockerConfig())}
        assert again["recommended"] == moved != digests["recommended"]
        async with Registry(ImageName.parse(name), DockerConfig(), plain_http=True) as asked:
            with pytest.raises(NotFound):
                await asked.tags(ImageName.parse(f"{registry.host}/team/none"))
            with pytest.raises(NotFound):
                await asked.digest(ImageName.parse(f"{name}:none"))
