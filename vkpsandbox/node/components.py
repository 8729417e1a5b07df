"""What runs on an ordinary Node beside containerd: kubelet, kube-proxy, kube-router for NetworkPolicies, CoreDNS.

All are stock programs with their defaults, but for what the namespaces of a sandbox ask for.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from vkpsandbox.controlplane.components import SERVICE_RANGE
from vkpsandbox.controlplane.content import write_account_kubeconfig
from vkpsandbox.controlplane.kubeconfig import certificate_user, read_cluster, write_kubeconfig
from vkpsandbox.controlplane.kubectl import Kubectl
from vkpsandbox.node import programs, room, runtime
from vkpsandbox.paths import Layout
from vkpsandbox.processes.process import ProcessSpec, write_atomically
from vkpsandbox.processes.record import OrdinaryNode

SYSTEM: Final = "kube-system"
DNS_ADDRESS: Final = "10.96.0.10"
"""The Service `kube-dns`, where kubeadm has it."""
DOMAIN: Final = "cluster.local"
KUBELET_CLIENT: Final = "kubelet"
"""The client certificate of the kubelet."""
PIDS_MAX: Final = 1024
"""The most processes of one Pod."""
_RULES: Final[Mapping[str, list[dict[str, list[str]]]]] = {
    programs.COREDNS: [
        {"apiGroups": [""], "resources": ["services", "pods", "namespaces"], "verbs": ["list", "watch"]},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
    ],
    programs.KUBE_ROUTER: [
        {
            "apiGroups": [""],
            "resources": ["namespaces", "pods", "nodes"],
            "verbs": ["get", "list", "watch"],
        },
        {"apiGroups": ["networking.k8s.io"], "resources": ["networkpolicies"], "verbs": ["list", "get", "watch"]},
    ],
}
"""Rights of the programs for which Kubernetes has no role."""
_COREFILE: Final = """\
.:53 {{
    bind {address}
    errors
    health {address}:8080
    kubernetes {domain} in-addr.arpa ip6.arpa {{
        kubeconfig {kubeconfig}
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
    }}
    cache 30
}}
"""


def client_of(node: OrdinaryNode) -> tuple[str, str]:
    """Return user and group of the kubelet, as the authorizer of Nodes wants them."""
    return f"system:node:{node.name}", "system:nodes"


def node_processes(
    layout: Layout, kubectl: Kubectl, node: OrdinaryNode, built: Mapping[str, Path]
) -> list[ProcessSpec]:
    """Apply what the programs need, write their configuration, and return their command lines, to be run inside.

    Args:
        layout: The sandbox's files.
        kubectl: As admin.
        node: The Node.
        built: The programs of `programs.MODULES`.

    Raises:
        SandboxError: The cluster refuses.
    """
    objects = {"apiVersion": "v1", "kind": "List", "items": _objects(node)}
    kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=json.dumps(objects))
    user = certificate_user(layout.pki, KUBELET_CLIENT)
    write_kubeconfig(
        _kubeconfig(layout, programs.KUBELET), name=node.name, cluster=read_cluster(layout.kubeconfig), user=user
    )
    for account in (programs.KUBE_PROXY, programs.KUBE_ROUTER, programs.COREDNS):
        write_account_kubeconfig(kubectl, layout, _kubeconfig(layout, account), account, account, SYSTEM)
    return [
        _kubelet(layout, node, built[programs.KUBELET]),
        _kube_proxy(layout, node, built[programs.KUBE_PROXY]),
        _kube_router(layout, node, built[programs.KUBE_ROUTER]),
        _coredns(layout, node, built[programs.COREDNS]),
    ]


def _kubelet(layout: Layout, node: OrdinaryNode, program: Path) -> ProcessSpec:
    resolv = layout.node / "resolv.conf"
    write_atomically(resolv, b"")
    config = layout.node / "kubelet.json"
    settings = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": node.address,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(layout.pki / "client-ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{room.cgroup_of(layout)}",
        "clusterDNS": [DNS_ADDRESS],
        "clusterDomain": DOMAIN,
        "containerRuntimeEndpoint": f"unix://{runtime.SOCKET}",
        # Pods do not go for want of the machine's disk, nor images that nobody can pull again.
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "0%", "imagefs.available": "0%"},
        "imageGCHighThresholdPercent": 100,
        "failCgroupV1": False,
        "failSwapOn": False,
        "podPidsLimit": PIDS_MAX,
        "resolvConf": str(resolv),
    }
    write_atomically(config, json.dumps(settings, indent=2).encode())
    argv = [
        str(program),
        f"--config={config}",
        f"--kubeconfig={_kubeconfig(layout, programs.KUBELET)}",
        f"--hostname-override={node.name}",
        f"--node-ip={node.address}",
    ]
    return ProcessSpec(name=programs.KUBELET, argv=argv, url=f"https://{node.address}:10250")


def _kube_proxy(layout: Layout, node: OrdinaryNode, program: Path) -> ProcessSpec:
    limits = ("max-per-core", "tcp-timeout-established", "tcp-timeout-close-wait")  # of the whole machine
    argv = [
        str(program),
        f"--kubeconfig={_kubeconfig(layout, programs.KUBE_PROXY)}",
        f"--hostname-override={node.name}",
        "--proxy-mode=nftables",
        f"--cluster-cidr={node.pods}",
        *(f"--conntrack-{each}=0" for each in limits),
    ]
    return ProcessSpec(name=programs.KUBE_PROXY, argv=argv)


def _kube_router(layout: Layout, node: OrdinaryNode, program: Path) -> ProcessSpec:
    argv = [
        str(program),
        f"--kubeconfig={_kubeconfig(layout, programs.KUBE_ROUTER)}",
        f"--hostname-override={node.name}",
        "--enable-ipv6=false",
        f"--service-cluster-ip-range={SERVICE_RANGE}",
    ]
    return ProcessSpec(name=programs.KUBE_ROUTER, argv=argv)


def _coredns(layout: Layout, node: OrdinaryNode, program: Path) -> ProcessSpec:
    corefile = layout.node / "Corefile"
    kubeconfig = _kubeconfig(layout, programs.COREDNS)
    write_atomically(corefile, _COREFILE.format(address=node.address, domain=DOMAIN, kubeconfig=kubeconfig).encode())
    return ProcessSpec(
        name=programs.COREDNS, argv=[str(program), "-conf", str(corefile)], url=f"udp://{node.address}:53"
    )


def _kubeconfig(layout: Layout, program: str) -> Path:
    return layout.component_kubeconfig(program)


def _objects(node: OrdinaryNode) -> list[dict[str, Any]]:
    """Return ServiceAccounts with their rights, and the Service of DNS, whose backend is a process of the Node."""
    group = "rbac.authorization.k8s.io"
    items: list[dict[str, Any]] = []
    roles = {programs.KUBE_PROXY: "system:node-proxier"}
    for account, rules in _RULES.items():
        roles[account] = f"sandbox:{account}"
        metadata = {"name": roles[account]}
        items.append({"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": metadata, "rules": rules})
    for account, role in roles.items():
        subject = {"kind": "ServiceAccount", "name": account, "namespace": SYSTEM}
        items += [
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account, "namespace": SYSTEM}},
            {
                "apiVersion": f"{group}/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": f"sandbox:{account}"},
                "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
                "subjects": [subject],
            },
        ]
    ports = [{"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "dns-tcp", "port": 53, "protocol": "TCP"}]
    named = {"name": "kube-dns", "namespace": SYSTEM}
    items += [
        {"apiVersion": "v1", "kind": "Service", "metadata": named, "spec": {"clusterIP": DNS_ADDRESS, "ports": ports}},
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {**named, "labels": {"kubernetes.io/service-name": "kube-dns"}},
            "addressType": "IPv4",
            "ports": ports,
            "endpoints": [{"addresses": [node.address]}],
        },
    ]
    return items
