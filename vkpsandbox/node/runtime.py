"""containerd of an ordinary Node: its configuration, the network of Pods, and images that no registry has."""

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from vkpsandbox.errors import SandboxError
from vkpsandbox.node.needs import find_plugins, find_program
from vkpsandbox.node.network import run
from vkpsandbox.node.room import entering, pid_of
from vkpsandbox.paths import Layout
from vkpsandbox.processes.process import ProcessSpec, write_atomically
from vkpsandbox.processes.record import OrdinaryNode

PROCESS: Final = "containerd"
SOCKET: Final = "/run/containerd/containerd.sock"
"""Where it listens, inside."""
_PAUSE: Final = "localhost/pause:1"
"""The image of the container that holds the namespaces of a Pod."""
_IMPORT_S: Final = 300.0
"""For an image of some hundred megabytes, on a machine that has other work."""
_CONFIG: Final = """\
version = 2
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{pause}"
# A machine that is itself a guest may not lower it.
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{plugins}"
conf_dir = "{networks}"
[plugins."io.containerd.grpc.v1.cri".containerd]
default_runtime_name = "runc"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
BinaryName = "{runc}"
SystemdCgroup = false
"""


def containerd_process(layout: Layout, node: OrdinaryNode) -> ProcessSpec:
    """Write the configuration of containerd and return its command line, to be run inside.

    Raises:
        SandboxError: A program or a plugin is not installed.
    """
    plugins = find_plugins()
    if not plugins:
        raise SandboxError("there are no CNI plugins: apt-get install containernetworking-plugins")
    networks = layout.node / "networks"
    networks.mkdir(exist_ok=True)
    write_atomically(networks / "pods.conflist", json.dumps(_network(node)).encode())
    config = layout.node / "containerd.toml"
    text = _CONFIG.format(pause=_PAUSE, plugins=plugins, networks=networks, runc=find_program("runc"))
    write_atomically(config, text.encode())
    return ProcessSpec(name=PROCESS, argv=[find_program("containerd"), "--config", str(config)], url=f"unix://{SOCKET}")


def _network(node: OrdinaryNode) -> dict[str, Any]:
    """Return the CNI configuration: every Pod has a link of its own to the Node.

    So what passes from Pod to Pod is routed, and meets the rules of NetworkPolicies; on a bridge it would do so only
    with a further module of the kernel.
    """
    ranges = [[{"subnet": node.pods}]]
    ipam = {"type": "host-local", "ranges": ranges, "routes": [{"dst": "0.0.0.0/0"}]}
    return {"cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "ptp", "ipMasq": False, "ipam": ipam}]}


def is_up(layout: Layout) -> bool:
    """Return whether containerd answers."""
    try:
        _ctr(layout, "version")
    except SandboxError:
        return False
    return True


def load(layout: Layout, archive: Path) -> str:
    """Import the images of an archive, of docker or OCI, for Pods; return what `ctr` says.

    Raises:
        SandboxError: There is no Node, or it is no such archive.
    """
    return _ctr(layout, "images", "import", str(archive))


def load_pause(layout: Layout) -> None:
    """Import the image that every Pod needs.

    Raises:
        SandboxError: containerd refuses.
    """
    archive = layout.node / "pause.tar"
    archive.write_bytes(image(_PAUSE, {"pause": Path(find_program("catatonit"))}, ["/pause", "-P"]))
    load(layout, archive)
    archive.unlink()


def image(name: str, programs: Mapping[str, Path], command: list[str]) -> bytes:
    """Return an archive (OCI image layout) of an image with nothing but static programs in its root.

    Args:
        name: With registry and tag.
        programs: Where each stands, by its name in the image.
        command: What it runs.
    """
    blobs: dict[str, bytes] = {}

    def described(content: bytes, kind: str) -> dict[str, Any]:
        digest = hashlib.sha256(content).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = content
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(content)}

    layer = described(_archived({file: path.read_bytes() for file, path in programs.items()}), "layer.v1.tar")
    architecture = {"x86_64": "amd64", "aarch64": "arm64"}[run("uname", "-m").strip()]
    config = {
        "architecture": architecture,
        "os": "linux",
        "config": {"Entrypoint": command},
        "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]},
    }
    described_config = described(json.dumps(config).encode(), "config.v1+json")
    manifest = {"schemaVersion": 2, "config": described_config, "layers": [layer]}
    top = described(json.dumps(manifest).encode(), "manifest.v1+json")
    top["annotations"] = {"io.containerd.image.name": name}
    index = {"schemaVersion": 2, "manifests": [top]}
    layout = {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}', "index.json": json.dumps(index).encode()}
    return _archived({**layout, **blobs})


def _archived(files: Mapping[str, bytes]) -> bytes:
    """Return a tar archive of files that everybody may run."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o755
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def _ctr(layout: Layout, *words: str) -> str:
    """Run containerd's own client, as Kubernetes' namespace."""
    pid = pid_of(layout)
    if pid is None:
        raise SandboxError(f"the sandbox of {layout.directory} has no ordinary Node: `vkprovider sandbox up --node`")
    return run(
        *entering(pid), find_program("ctr"), f"--address={SOCKET}", "--namespace=k8s.io", *words, timeout_s=_IMPORT_S
    )
