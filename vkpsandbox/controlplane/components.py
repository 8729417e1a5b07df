"""The command lines of the control plane: stock programs, defaults wherever there is one.

What differs from the defaults and why:

* every listener is on loopback, on a port that was found; beside an ordinary Node the API server is on the link to it;
* etcd does not wait for the disk (`--unsafe-no-fsync`): a sandbox need not survive a power failure;
* the rest is what kubeadm sets: RBAC, certificates, ServiceAccount keys, signers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from vkpsandbox.controlplane.kubeconfig import certificate_user, cluster_entry, write_kubeconfig
from vkpsandbox.controlplane.pki import CLIENTS, TOKENS, token_of
from vkpsandbox.paths import Layout
from vkpsandbox.processes.process import ProcessSpec

LOOPBACK: Final = "127.0.0.1"

SERVICE_RANGE: Final = "10.96.0.0/16"

ADVERTISED: Final = "192.0.2.1"
"""A documentation address (RFC 5737): EndpointSlices refuse loopback addresses, and a machine may have no other."""

ISSUER: Final = "https://kubernetes.default.svc.cluster.local"

AUDIT_POLICY: Final = """\
apiVersion: audit.k8s.io/v1
kind: Policy
# One line per request, when its response is complete; a watch counts when it ends.
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Metadata
"""

PORTS_NEEDED: Final = 5
API_PORT: Final = 6443
"""The port of an API server that has an address of its own: the one that NetworkPolicies expect."""


@dataclass(frozen=True)
class Tuning:
    """What a caller changes of the stock defaults, for a benchmark that states it beside its figures.

    Attributes:
        args: Further arguments by component: `{"kube-scheduler": ["--kube-api-qps=500"]}`.
        env: Environment variables of every component.
    """

    args: Mapping[str, Sequence[str]] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)

    def applied_to(self, spec: ProcessSpec) -> ProcessSpec:
        """Return a component's specification with what is changed."""
        return msgspec.structs.replace(
            spec, argv=[*spec.argv, *self.args.get(spec.name, ())], env={**spec.env, **self.env}
        )


@dataclass(frozen=True)
class Ports:
    """The ports of the control plane, all on 127.0.0.1 but that of the API server.

    Attributes:
        host: Where the API server listens.
    """

    api: int
    etcd: int
    etcd_peer: int
    scheduler: int
    controller_manager: int
    host: str = LOOPBACK

    @property
    def server(self) -> str:
        """The API server's URL."""
        return f"https://{self.host}:{self.api}"

    @property
    def advertised(self) -> str:
        """The address of the API server in the Service `kubernetes`."""
        return ADVERTISED if self.host == LOOPBACK else self.host


def store_and_api(layout: Layout, programs: Path, ports: Ports, *, audit: bool) -> list[ProcessSpec]:
    """Return etcd and the API server; they start together, the API server waits for etcd."""
    return [etcd(layout, programs, ports), apiserver(layout, programs, ports, audit=audit)]


def etcd(layout: Layout, programs: Path, ports: Ports) -> ProcessSpec:
    """Return the command line of etcd: one member, mutual TLS."""
    client, peer = f"https://{LOOPBACK}:{ports.etcd}", f"https://{LOOPBACK}:{ports.etcd_peer}"
    pki = layout.pki
    argv = [
        f"{programs / 'etcd'}",
        "--name=sandbox",
        f"--data-dir={layout.etcd}",
        "--unsafe-no-fsync",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=sandbox={peer}",
        f"--cert-file={pki / 'server.crt'}",
        f"--key-file={pki / 'server.key'}",
        "--client-cert-auth",
        f"--trusted-ca-file={pki / 'client-ca.crt'}",
        f"--peer-cert-file={pki / 'server.crt'}",
        f"--peer-key-file={pki / 'server.key'}",
        "--peer-client-cert-auth",
        f"--peer-trusted-ca-file={pki / 'server-ca.crt'}",
        # By default it would dial etcd with the server's certificate, which is not a client's.
        "--enable-grpc-gateway=false",
    ]
    return ProcessSpec(name="etcd", argv=argv, url=client)


def apiserver(layout: Layout, programs: Path, ports: Ports, *, audit: bool) -> ProcessSpec:
    """Return the command line of kube-apiserver."""
    pki = layout.pki
    argv = [
        f"{programs / 'kube-apiserver'}",
        f"--bind-address={ports.host}",
        f"--secure-port={ports.api}",
        f"--advertise-address={ports.advertised}",
        f"--etcd-servers=https://{LOOPBACK}:{ports.etcd}",
        f"--etcd-cafile={pki / 'server-ca.crt'}",
        f"--etcd-certfile={pki / 'apiserver-etcd-client.crt'}",
        f"--etcd-keyfile={pki / 'apiserver-etcd-client.key'}",
        f"--tls-cert-file={pki / 'server.crt'}",
        f"--tls-private-key-file={pki / 'server.key'}",
        f"--client-ca-file={pki / 'client-ca.crt'}",
        f"--token-auth-file={pki / TOKENS}",
        "--authorization-mode=Node,RBAC",
        "--allow-privileged=true",
        f"--service-cluster-ip-range={SERVICE_RANGE}",
        f"--service-account-issuer={ISSUER}",
        f"--service-account-key-file={pki / 'sa.pub'}",
        f"--service-account-signing-key-file={pki / 'sa.key'}",
        f"--kubelet-client-certificate={pki / 'apiserver-kubelet-client.crt'}",
        f"--kubelet-client-key={pki / 'apiserver-kubelet-client.key'}",
        f"--requestheader-client-ca-file={pki / 'front-proxy-ca.crt'}",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-username-headers=X-Remote-User",
        f"--proxy-client-cert-file={pki / 'front-proxy-client.crt'}",
        f"--proxy-client-key-file={pki / 'front-proxy-client.key'}",
    ]
    if ports.host != LOOPBACK:
        # As kubeadm: the name of an ordinary Node is in no DNS.
        argv.append("--kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname")
    if audit:
        argv += [
            f"--audit-policy-file={layout.audit_policy}",
            f"--audit-log-path={layout.audit_log}",
            # In MB. The default rotates after 100, and a count of requests would miss some.
            "--audit-log-maxsize=100000",
        ]
    return ProcessSpec(name="kube-apiserver", argv=argv, url=ports.server)


def scheduler(layout: Layout, programs: Path, ports: Ports) -> ProcessSpec:
    """Return the command line of kube-scheduler."""
    argv = [
        f"{programs / 'kube-scheduler'}",
        *_component(layout, "kube-scheduler", ports.scheduler),
    ]
    url = f"https://{LOOPBACK}:{ports.scheduler}"
    return ProcessSpec(name="kube-scheduler", argv=argv, url=url)


def controller_manager(layout: Layout, programs: Path, ports: Ports) -> ProcessSpec:
    """Return the command line of kube-controller-manager."""
    pki = layout.pki
    signers = {
        "kube-apiserver-client": "client-ca",
        "kubelet-client": "client-ca",
        "kubelet-serving": "server-ca",
        "legacy-unknown": "client-ca",
    }
    argv = [
        f"{programs / 'kube-controller-manager'}",
        *_component(layout, "kube-controller-manager", ports.controller_manager),
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={pki / 'sa.key'}",
        # The default is outside the sandbox's directory and would be created.
        f"--flex-volume-plugin-dir={layout.flexvolume}",
        f"--root-ca-file={pki / 'server-ca.crt'}",
    ]
    for signer, authority in signers.items():
        argv.append(f"--cluster-signing-{signer}-cert-file={pki / authority}.crt")
        argv.append(f"--cluster-signing-{signer}-key-file={pki / authority}.key")
    url = f"https://{LOOPBACK}:{ports.controller_manager}"
    return ProcessSpec(name="kube-controller-manager", argv=argv, url=url)


def write_kubeconfigs(layout: Layout, server: str, context: str) -> None:
    """Write the kubeconfigs of the admin and of the components."""
    cluster = cluster_entry(server, layout.pki / "server-ca.crt")
    for client, path in {
        "admin": layout.kubeconfig,
        "kube-scheduler": layout.component_kubeconfig("kube-scheduler"),
        "kube-controller-manager": layout.component_kubeconfig("kube-controller-manager"),
    }.items():
        user = certificate_user(layout.pki, client)
        if client == "admin":
            user["token"] = token_of(layout.pki, CLIENTS["admin"][0])
        write_kubeconfig(path, name=context, cluster=cluster, user=user)


def _component(layout: Layout, name: str, port: int) -> list[str]:
    """Return the arguments that scheduler and controller-manager share."""
    kubeconfig = layout.component_kubeconfig(name)
    return [
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={port}",
        f"--tls-cert-file={layout.pki / 'server.crt'}",
        f"--tls-private-key-file={layout.pki / 'server.key'}",
    ]
