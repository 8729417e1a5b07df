"""`vkprovider prepull`: have ordinary Nodes pull images before somebody waits for them."""

import asyncio
import sys
from pathlib import Path
from typing import Final

import click
import msgspec

from vkprovider.cli.shared.options import cluster_options
from vkprovider.platform.errors import VkproviderError
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.settings import KubeSettings
from vkprovider.prepull.config import PrepullConfig, read_config
from vkprovider.prepull.distribution import DockerConfig
from vkprovider.prepull.passes import Prepulling, wanted_images
from vkprovider.prepull.plan import PrepullPlan

_TIMEOUT_S: Final = 10.0
_AGAIN_S: Final = 5.0


@click.command()
@cluster_options
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@click.option("-n", "--namespace", required=True, help="Namespace of the Pods that pull.")
@click.option(
    "--docker-config",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Logins of registries, as `docker login` writes them.",
)
@click.option("--look", is_flag=True, help="Print which Nodes lack what, and change nothing.")
@click.option("--timeout", default=3600, show_default=True, type=click.IntRange(1), help="Seconds until it gives up.")
def prepull(
    kubeconfig: str | None,
    context: str | None,
    file: Path,
    namespace: str,
    docker_config: Path | None,
    look: bool,  # noqa: FBT001 (click passes flags so)
    timeout: int,
) -> None:
    """Have ordinary Nodes pull the images that FILE names, a few Nodes at once.

    FILE is YAML: images, repositories (name, recommendedTag, numReleases, numWeeklies, numDailies, pins, cycle,
    aliasTags), nodeSelector, atOnce and pullSecret. Of a repository the recommended, newest and pinned tags are pulled.
    Run it again, as a CronJob does, for new tags and new Nodes; what is there is not pulled again.

    Exit code 0: every Node has all; 1: some lack something; 2: it could not be found out.
    """
    try:
        config, logins = read_config(file), DockerConfig()
        if docker_config is not None:
            logins = msgspec.json.decode(docker_config.read_bytes(), type=DockerConfig)
        found = asyncio.run(_run(config, logins, (kubeconfig, context, namespace), 0 if look else timeout))
    except (VkproviderError, OSError, msgspec.DecodeError) as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
    for line in lines_of(found):
        click.echo(line)
    sys.exit(1 if any(found.missing.values()) else 0)


def lines_of(found: PrepullPlan) -> list[str]:
    """Return what is printed: a line for each image, and one for each pull that fails."""
    lines = []
    for image, nodes in found.missing.items():
        where = f"missing on {', '.join(nodes)}" if nodes else "on all Nodes"
        lines.append(f"{image}: {where}")
        lines += [f"  {node}: {why}" for (name, node), why in found.failing.items() if name == image]
    return lines


async def _run(
    config: PrepullConfig, logins: DockerConfig, place: tuple[str | None, str | None, str], within_s: int
) -> PrepullPlan:
    """Have images pulled until all are there, or all that are left fail, or the time is over; 0 s only looks."""
    kubeconfig, context, namespace = place
    end_s = asyncio.get_running_loop().time() + within_s
    wanted = await wanted_images(config, logins)
    kube = await KubeClient.connect(KubeSettings(kubeconfig=kubeconfig), context=context, timeout_s=_TIMEOUT_S)
    try:
        prepulling = Prepulling(kube, namespace, config)
        while True:
            found = await prepulling.look(wanted)
            if within_s == 0:
                return found
            await prepulling.act(found)
            left = sum(map(len, found.missing.values())) - len(found.failing)
            if left == 0 or asyncio.get_running_loop().time() > end_s:
                return found
            await asyncio.sleep(_AGAIN_S)
    finally:
        await kube.close()
