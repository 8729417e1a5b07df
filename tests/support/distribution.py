"""A real registry, built once from its Go module `github.com/distribution/distribution`, and images pushed to it."""

import hashlib
import json
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.support.waiting import until
from vkpsandbox.controlplane.build import GoModule, ensure_built
from vkpsandbox.processes.ports import free_ports

_FOLDER: Final = Path(__file__).parent / "registry"
_MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
_CONFIG: Final = "application/vnd.oci.image.config.v1+json"


def program() -> Path:
    """Return the registry, building it if it is not cached.

    Raises:
        SandboxError: There is no Go, or the build fails.
    """
    go_mod, go_sum = (_FOLDER / "go.mod").read_bytes(), (_FOLDER / "go.sum").read_bytes()
    package = "github.com/distribution/distribution/v3/cmd/registry"
    module = GoModule(
        "registry", "a registry", "some 3 minutes on 2 cores", go_mod, go_sum, {"registry": package}, "-s -w"
    )
    return ensure_built(module, print) / "registry"


class DistributionRegistry:
    """A registry that runs.

    Attributes:
        host: Host and port.
    """

    def __init__(self, port: int) -> None:
        self.host = f"127.0.0.1:{port}"

    def _send(self, method: str, path: str, body: bytes | None = None, kind: str = "") -> Any:
        url = path if path.startswith("http") else f"http://{self.host}{path}"
        headers = {"Content-Type": kind or "application/octet-stream"}
        request = urllib.request.Request(url, data=body, method=method, headers=headers)  # noqa: S310 (the registry's)
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 (same)
            return answer.headers

    def push(self, repository: str, content: str, *tags: str) -> str:
        """Push an image without layers under some tags; return its digest."""
        config = json.dumps({"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers"}, "author": content})
        digest = f"sha256:{hashlib.sha256(config.encode()).hexdigest()}"
        where = self._send("POST", f"/v2/{repository}/blobs/uploads/")["Location"]
        self._send("PUT", f"{where}{'&' if '?' in where else '?'}digest={digest}", config.encode())
        described = {"mediaType": _CONFIG, "digest": digest, "size": len(config)}
        manifest = {"schemaVersion": 2, "mediaType": _MANIFEST, "config": described, "layers": []}
        pushed = ""
        for tag in tags:
            path = f"/v2/{repository}/manifests/{tag}"
            pushed = self._send("PUT", path, json.dumps(manifest).encode(), _MANIFEST)["Docker-Content-Digest"]
        return pushed


@contextmanager
def running(folder: Path, tags_max: int) -> Iterator[DistributionRegistry]:
    """Start a registry, and end it with the block.

    Args:
        folder: Of its files.
        tags_max: The most tags of one page.
    """
    [port] = free_ports(1)
    config = {
        "version": 0.1,
        "storage": {"filesystem": {"rootdirectory": str(folder / "data")}, "tag": {"concurrencylimit": 2}},
        "http": {"addr": f"127.0.0.1:{port}"},
        "catalog": {"maxentries": tags_max},
        "log": {"level": "error"},
    }
    file = folder / "registry.json"  # JSON is YAML
    file.write_text(json.dumps(config))
    with subprocess.Popen([program(), "serve", str(file)], cwd=folder) as process:  # noqa: S603 (built here)
        try:
            made = DistributionRegistry(port)

            def answers() -> bool:
                try:
                    with urllib.request.urlopen(f"http://{made.host}/v2/", timeout=5) as answer:
                        return bool(answer.status == 200)
                except OSError:
                    return False

            until(answers, 30)
            yield made
        finally:
            process.terminate()
