from pathlib import Path

import pytest
import yaml
from cryptography import x509

from vkprovider.platform.errors import VkproviderError
from vkprovider.platform.shipped import find_manifests
from vkpsandbox.controlplane import components, content, programs, tunnels
from vkpsandbox.controlplane.pki import CLIENTS, SERVER_NAMES, write_pki
from vkpsandbox.paths import Layout
from vkpsandbox.processes.process import Restart
from vkpsandbox.processes.record import Broker, Record

PORTS = components.Ports(api=1, etcd=2, etcd_peer=3, scheduler=4, controller_manager=5)
BIN = Path("/bin")


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path)


def test_api_server_has_rbac_and_only_loopback(layout: Layout) -> None:
    argv = components.apiserver(layout, BIN, PORTS, audit=False).argv
    assert "--authorization-mode=Node,RBAC" in argv
    assert "--bind-address=127.0.0.1" in argv
    assert "--secure-port=1" in argv
    assert not any(flag.startswith(("--enable-admission", "--disable-admission", "--feature-gates")) for flag in argv)
    assert not any("audit" in flag for flag in argv)


def test_audit_is_asked_for(layout: Layout) -> None:
    argv = components.apiserver(layout, BIN, PORTS, audit=True).argv
    assert f"--audit-log-path={layout.audit_log}" in argv
    policy = yaml.safe_load(components.AUDIT_POLICY)
    assert policy["rules"] == [{"level": "Metadata"}]
    assert "RequestReceived" in policy["omitStages"]


def test_scheduler_and_controllers_keep_their_defaults(layout: Layout) -> None:
    for spec in (components.scheduler(layout, BIN, PORTS), components.controller_manager(layout, BIN, PORTS)):
        assert f"--kubeconfig={layout.component_kubeconfig(spec.name)}" in spec.argv
        assert not any(
            flag.startswith(("--leader-elect", "--controllers", "--node-monitor", "--kube-api-")) for flag in spec.argv
        )
        assert spec.restart is Restart.ALWAYS


def test_the_api_server_and_the_programs_run_with_stock_limits(layout: Layout) -> None:
    specs = [
        *components.store_and_api(layout, BIN, PORTS, audit=False),
        components.scheduler(layout, BIN, PORTS),
        components.controller_manager(layout, BIN, PORTS),
    ]
    assert not any("inflight" in flag for spec in specs for flag in spec.argv)
    assert all(not spec.env for spec in specs)


def test_a_caller_may_change_the_defaults_of_a_component(layout: Layout) -> None:
    tuning = components.Tuning({"kube-scheduler": ["--kube-api-qps=500"]}, {"GOGC": "300"})
    scheduler, manager = components.scheduler(layout, BIN, PORTS), components.controller_manager(layout, BIN, PORTS)
    assert tuning.applied_to(scheduler).argv == [*scheduler.argv, "--kube-api-qps=500"]
    assert tuning.applied_to(manager).argv == manager.argv
    assert tuning.applied_to(scheduler).env == tuning.applied_to(manager).env == {"GOGC": "300"}


def test_certificates_name_users_and_servers(layout: Layout) -> None:
    write_pki(layout.pki)
    for client, (user, group) in CLIENTS.items():
        subject = x509.load_pem_x509_certificate((layout.pki / f"{client}.crt").read_bytes()).subject
        names = {str(attribute.value) for attribute in subject}
        assert names == {user, group} - {""}
    server = x509.load_pem_x509_certificate((layout.pki / "server.crt").read_bytes())
    alternatives = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert {str(name.value) for name in alternatives} == set(SERVER_NAMES)
    for client in CLIENTS:
        certificate = x509.load_pem_x509_certificate((layout.pki / f"{client}.crt").read_bytes())
        authority = "front-proxy-ca" if client == "front-proxy-client" else "client-ca"
        certificate.verify_directly_issued_by(
            x509.load_pem_x509_certificate((layout.pki / f"{authority}.crt").read_bytes())
        )
    assert all(path.stat().st_mode & 0o077 == 0 for path in layout.pki.iterdir())


def test_provider_is_never_admin_and_names_itself(layout: Layout) -> None:
    spec = programs.provider_process(layout.provider_kubeconfig, 1, {"LOG_LEVEL": "DEBUG"})
    assert spec.env["KUBECONFIG"] == str(layout.provider_kubeconfig)
    assert spec.env["LABLET_CONTROLLER_INSTANCE_ID"] is None
    assert spec.env["LOG_LEVEL"] == "DEBUG"
    assert spec.url == f"http://{spec.env['VKPROVIDER_HTTP_HOST']}:{spec.env['VKPROVIDER_HTTP_PORT']}"
    assert spec.env["VKPROVIDER_HTTP_HOST"] == "127.0.0.1"


def test_a_worker_behind_a_tunnel_has_neither_url_nor_secret(layout: Layout) -> None:
    [worker] = programs.plan_workers(layout, 1, "cml")
    [custom] = content.worker_objects(worker, 1, "mine", {"tunnel": "mqtt"})
    assert custom["spec"]["tunnel"] == "mqtt"
    assert not {"url", "credentialsSecretName"} & custom["spec"].keys()


def test_broker_and_agents_share_accounts(layout: Layout) -> None:
    """Each with a password of its own, which only hashed reaches the broker's file."""
    layout.workers.mkdir(parents=True)
    workers = programs.plan_workers(layout, 2, "cml")
    broker = Broker(
        "/usr/sbin/mosquitto", 1883, {"vkprovider": "r", **{worker.name: f"p-{worker.name}" for worker in workers}}
    )
    spec = tunnels.broker_process(layout, broker, find_manifests())
    users = (layout.workers / "mosquitto.users").read_text()
    assert [line.partition(":")[0] for line in users.splitlines()] == ["vkprovider", "worker-1", "worker-2"]
    assert "p-worker-1" not in users
    assert spec.argv == ["/usr/sbin/mosquitto", "-c", str(layout.workers / "mosquitto.conf")]
    record = Record(name="mine", kubectl="", context="", foreign=False, audit=False, workers=workers, broker=broker)
    replica, agent = tunnels.replica_settings(record), tunnels.agent_process(layout, record, workers[0], [])
    assert replica["VKPROVIDER_TUNNEL_MQTT_URL"] == agent.env["VKPROVIDER_TUNNEL_MQTT_URL"] == "mqtt://127.0.0.1:1883"
    assert agent.env["VKPROVIDER_TUNNEL_MQTT_PASSWORD"] == "p-worker-1"
    assert agent.env["VKPROVIDER_AGENT_NAME"] == agent.env["VKPROVIDER_TUNNEL_MQTT_USERNAME"] == "worker-1"


def test_missing_manifests_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vkprovider.__file__", str(tmp_path / "vkprovider" / "__init__.py"))
    with pytest.raises(VkproviderError, match=r"no manifests .*--workers 0 --no-provider"):
        find_manifests()
