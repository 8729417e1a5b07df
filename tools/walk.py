"""Files that run between a Pod's ADDED and the import of its lab: `python -m tools.walk [REVISION] [--list]`.

It starts a sandbox with one simulated worker, runs the provider of the checkout or of a revision under a profiler, and
creates Pods one after the other. A file counts if a function of it runs in every walk, from the bytes of the watch
event until the request `…/import` is sent. Periodic loops run beside, so the count includes the files of a probe.
"""

import argparse
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import deque
from pathlib import Path
from types import FrameType
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
PODS: Final = 4
LOOK_BACK_S: Final = 0.02
"""How far the walk begins before the store passes the Pod on: the watch event is read and decoded then."""
PACKAGES: Final = ("/vkprovider/", "/tunnels/")


class Recorder:
    """A profile function that writes the files of each walk as one JSON line."""

    def __init__(self, out: Path) -> None:
        """Create it; `out` is appended to."""
        self._out = out
        self._recent: deque[tuple[float, str]] = deque(maxlen=20_000)
        self._walk: dict[str, None] | None = None

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Record the call of a function of the product."""
        if event != "call":
            return
        code, name, now = frame.f_code, _file(frame), time.monotonic()
        if not name:
            return
        self._recent.append((now, name))
        if self._walk is not None:
            self._walk[name] = None
        if code.co_name == "pod_changed" and "/controllers/lablet" in name and frame.f_locals.get("old") is None:
            self._walk = dict.fromkeys([*_stack(frame), *(file for at, file in self._recent if at > now - LOOK_BACK_S)])
        elif self._walk is not None and name.endswith("direct.py") and _sends_import(frame):
            with self._out.open("a") as out:
                out.write(json.dumps(list(self._walk)) + "\n")
            self._walk = None


def _file(frame: FrameType) -> str:
    """Return the file of a frame below the checkout; "" if it is not the product's."""
    path = frame.f_code.co_filename
    at = max(path.rfind(package) for package in PACKAGES)
    return path[at + 1 :] if at >= 0 else ""


def _stack(frame: FrameType | None) -> list[str]:
    """Return the files of a frame and its callers that handle the watch, outermost first."""
    files: list[str] = []
    while frame is not None and frame.f_code.co_name != "run":
        files.append(_file(frame))
        frame = frame.f_back
    return [file for file in reversed(files) if file]


def _sends_import(frame: FrameType) -> bool:
    values = frame.f_locals.values()
    return frame.f_code.co_name == "request" and any(isinstance(v, str) and v.endswith("/import") for v in values)


def trace(out: Path) -> None:
    """Run `vkprovider run` under the recorder, with whichever product `PYTHONPATH` names."""
    from vkprovider.cli.run import run  # noqa: PLC0415 (of the revision under test)

    sys.setprofile(Recorder(out))
    run([])


def measure(product: Path) -> list[list[str]]:
    """Return the files of every walk of a checkout's product."""
    from vkpsandbox import Sandbox  # noqa: PLC0415 (the traced process does without)
    from vkpsandbox.controlplane.programs import provider_process  # noqa: PLC0415 (as above)

    with (
        tempfile.TemporaryDirectory() as folder,
        Sandbox.up(
            "walk", directory=Path(folder, "sandbox"), workers=1, provider=False, tied=True, on_progress=print
        ) as sandbox,
    ):
        out = Path(folder, "walks")
        spec = provider_process(sandbox.provider_kubeconfig, 1, {})
        changes = {name: value for name, value in spec.env.items() if value is not None}
        command = [sys.executable, "-P", str(Path(__file__).resolve()), "--trace", str(out)]
        provider = subprocess.Popen(  # noqa: S603 (this program)
            command, env={**os.environ, **changes, "PYTHONPATH": str(product)}, stderr=subprocess.DEVNULL
        )
        try:
            _walk_pods(sandbox)
        finally:
            provider.terminate()
            provider.wait()
        return [json.loads(line) for line in out.read_text().splitlines()]


def _walk_pods(sandbox: Any) -> None:
    sandbox.kubectl("wait", "--for=condition=Ready", "cmlw", "--all", "--timeout=60s")
    sandbox.kubectl("apply", "-f", str(ROOT / "manifests" / "examples" / "netlab.yaml"))
    sandbox.kubectl("wait", "--for=condition=Ready", "ldef/netlab", "--timeout=60s")
    for number in range(PODS):
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"walk-{number}"},
            "spec": {"runtimeClassName": "netlab", "containers": [{"name": "lab", "image": "netlab"}]},
        }
        sandbox.kubectl("create", "-f", "-", input=json.dumps(pod))
        sandbox.kubectl("wait", "--for=condition=Ready", f"pod/walk-{number}", "--timeout=90s")


def extract(revision: str, folder: Path) -> Path:
    """Write the product of a revision to a folder; return it."""
    archive = subprocess.run(  # noqa: S603 (git of the checkout)
        ["git", "-C", str(ROOT), "archive", revision, "vkprovider", "tunnels"],  # noqa: S607 (as above)
        stdout=subprocess.PIPE,
        check=True,
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")
    return folder


def main(arguments: list[str]) -> int:
    """Print the number of files; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.walk", description=__doc__)
    parser.add_argument("revision", nargs="?", help="revision of git; the working tree if omitted")
    parser.add_argument("--list", action="store_true", help="also print the files, in the order of their first call")
    parser.add_argument("--trace", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.trace is not None:
        trace(options.trace)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        product = extract(options.revision, Path(folder)) if options.revision else ROOT
        walks = measure(product)
    common = [file for file in walks[-1] if all(file in walk for walk in walks)]
    if len(walks) < PODS:
        print(f"only {len(walks)} of {PODS} walks were recorded")
        return 1
    print(f"{len(common):>7,}  files between a Pod's ADDED and CML's import call, in each of {PODS} walks")
    for file in common if options.list else []:
        print(f"           {file}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
