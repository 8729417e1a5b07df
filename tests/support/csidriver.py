"""A CSI driver on an ordinary Node: learners' homes, folders of the Node that stay when a Pod ends.

It runs as drivers do: a privileged Pod that mounts for the kubelet. Its image is that of workbenches, which has gRPC.
"""

from typing import Any, Final

from vkpsandbox.processes.record import OrdinaryNode

DRIVER: Final = "homes.example.com"
HOMES: Final = "/var/lib/homes"
"""The folder of the Node with all homes; the attribute `share` of a volume is a path in it."""
_KUBELET: Final = "/var/lib/kubelet"
_PROGRAM: Final = r"""
import ctypes, os, sys
from concurrent.futures import ThreadPoolExecutor
import grpc

NAME, NODE, HOMES, KUBELET = sys.argv[1:]
BIND, DETACH = 4096, 2
libc = ctypes.CDLL(None, use_errno=True)

def varint(data, at):
    number = shift = 0
    while True:
        number |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 128:
            return number, at

def fields(data):  # numbers and texts alone, as in all requests that are made of us
    at, found = 0, {}
    while at < len(data):
        key, at = varint(data, at)
        length, at = varint(data, at)
        if key & 7 == 2:
            found.setdefault(key >> 3, []).append(data[at:at + length])
            at += length
    return found

def texts(**given):
    pairs = [(int(name[1:]), text.encode()) for name, text in given.items()]
    return b"".join(bytes([number << 3 | 2, len(text)]) + text for number, text in pairs)

def is_mounted(target):  # also from a folder of the same file system, which os.path.ismount does not see
    with open("/proc/self/mountinfo", "rb") as file:
        return any(line.split()[4] == target for line in file)

def publish(request):
    asked = fields(request)
    pairs = [fields(each) for each in asked[8]]
    share = {pair[1][0]: pair.get(2, [b""])[0] for pair in pairs}[b"share"].decode()
    home, target = HOMES + share, asked[4][0]
    os.makedirs(home, exist_ok=True)
    os.makedirs(target, exist_ok=True)
    if not is_mounted(target) and libc.mount(home.encode(), target, None, BIND, None):
        raise OSError(ctypes.get_errno(), "mount")
    return b""

def unpublish(request):
    target = fields(request)[2][0]
    while is_mounted(target):
        libc.umount2(target, DETACH)
    if os.path.exists(target):
        os.rmdir(target)
    return b""

own, registration = f"{KUBELET}/plugins/{NAME}.sock", f"{KUBELET}/plugins_registry/{NAME}.sock"
ANSWERS = {
    "/pluginregistration.Registration/GetInfo": lambda _: texts(_1="CSIPlugin", _2=NAME, _3=own, _4="1.0.0"),
    "/pluginregistration.Registration/NotifyRegistrationStatus": lambda _: b"",
    "/csi.v1.Identity/GetPluginInfo": lambda _: texts(_1=NAME, _2="1"),
    "/csi.v1.Identity/GetPluginCapabilities": lambda _: b"",
    "/csi.v1.Identity/Probe": lambda _: b"",
    "/csi.v1.Node/NodeGetInfo": lambda _: texts(_1=NODE),
    "/csi.v1.Node/NodeGetCapabilities": lambda _: b"",
    "/csi.v1.Node/NodePublishVolume": publish,
    "/csi.v1.Node/NodeUnpublishVolume": unpublish,
}

class Handler(grpc.GenericRpcHandler):
    def service(self, call):
        answer = ANSWERS.get(call.method)
        return answer and grpc.unary_unary_rpc_method_handler(lambda request, _: answer(request))

server = grpc.server(ThreadPoolExecutor(4), handlers=[Handler()])
for path in (own, registration):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.exists(path):
        os.unlink(path)
    server.add_insecure_port(f"unix:{path}")
server.start()
print("serves", flush=True)
server.wait_for_termination()
"""


def csi_driver(node: OrdinaryNode, image: str) -> list[dict[str, Any]]:
    """Return the objects that make the driver; its Pod is for kube-system."""
    mounts = [
        {"name": "kubelet", "mountPath": _KUBELET, "mountPropagation": "Bidirectional"},
        {"name": "homes", "mountPath": HOMES},
    ]
    program = ["/opt/workbench/bin/python", "-c", _PROGRAM, DRIVER, node.name, HOMES, _KUBELET]
    root = {"privileged": True, "runAsUser": 0}
    container = {"name": "it", "image": image, "command": program, "securityContext": root, "volumeMounts": mounts}
    folders = {"kubelet": _KUBELET, "homes": HOMES}
    volumes = [
        {"name": name, "hostPath": {"path": path, "type": "DirectoryOrCreate"}} for name, path in folders.items()
    ]
    spec = {"attachRequired": False, "volumeLifecycleModes": ["Ephemeral"], "fsGroupPolicy": "File"}
    return [
        {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": DRIVER}, "spec": spec},
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "homes", "namespace": "kube-system"},
            "spec": {"containers": [container], "volumes": volumes, "terminationGracePeriodSeconds": 1},
        },
    ]
