"""`kubectl lablet screen` leads a VNC viewer to a device: through kubectl, the real API server and our kubelet API."""

import asyncio
import os
import signal
import sys
from pathlib import Path

from tests.component.controllers.consolesite import open_site
from tests.component.controllers.harness import World
from tests.support.apiserver import ApiServer
from tests.support.rfb import ASK, ASK_CHANGES, BLOCK_BYTES, HELLO, WHOLE_BYTES, click, hello_bytes, pixel
from vkprovider.platform.shipped import find_manifests
from vkpsandbox.controlplane.build import find_kubectl
from vkpsim.cml.consoles.screen import BARS, WHITE


async def test_viewers_of_this_machine_see_the_screen_and_click(world: World, apiserver: ApiServer) -> None:
    site = await open_site(world, patty=True)
    path = [str(Path(sys.executable).parent), str(find_kubectl().parent), os.environ["PATH"]]
    environ = {
        **os.environ,
        "PATH": os.pathsep.join(path),
        "PYTHONPATH": str(find_manifests().parent),
        "KUBECONFIG": str(apiserver.kubeconfig),
    }

    async def plugin(*words: str) -> asyncio.subprocess.Process:
        command = ("kubectl", "lablet", "screen", "-n", world.namespace, site.lablet.name, *words)
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(
            *command, env=environ, stdout=pipe, stderr=pipe, start_new_session=True
        )

    none = await plugin("r1")
    _, said = await asyncio.wait_for(none.communicate(), 60)
    assert (none.returncode, b"no device 'r1' with a tag `vnc:PORT` in its topology; with one: h0" in said) == (1, True)

    running = await plugin("h0", "--local", "0")
    assert running.stdout is not None
    try:
        line = (await asyncio.wait_for(running.stdout.readline(), 60)).decode()
        assert line.startswith("vncviewer localhost:")
        port = int(line.rpartition(":")[2])
        for expected in (WHITE, BARS[0]):  # one viewer after the other
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            async with asyncio.timeout(60):
                writer.write(HELLO)
                assert (await reader.readexactly(hello_bytes("h0"))).endswith(b"h0")
                writer.write(ASK)
                assert len(await reader.readexactly(WHOLE_BYTES)) == WHOLE_BYTES
                writer.write(ASK_CHANGES + click(5, 5))
                assert pixel(await reader.readexactly(BLOCK_BYTES)) == expected
                writer.write_eof()
                assert await reader.read() == b"", "kubectl ends with its viewer"
            writer.close()
    finally:
        os.killpg(running.pid, signal.SIGINT)
        await asyncio.wait_for(running.communicate(), 60)
