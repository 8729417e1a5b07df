"""Every environment variable of the lablet controller works by its name and has its default (R000-115…122)."""

import io
import json
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
import structlog
from click.testing import CliRunner
from pydantic import ValidationError

from tools.generate import groups, variables
from vkprovider.cli.main import main
from vkprovider.labs.pure.topology.resources import SHIPPED
from vkprovider.labs.settings.cluster import Settings
from vkprovider.labs.wiring.base import node_definitions
from vkprovider.platform.errors import InputError
from vkprovider.platform.runtime.context import own_ip
from vkprovider.platform.settings import reveal

Effect = Callable[[Settings], object]


TABLE: list[tuple[str, str, Effect, object, object]] = [
    # variable, a value, where its effect is seen, what is seen there, what is seen without it
    ("ETCD_HOST", "etcd.example.com", lambda s: s.unused.etcd_host, "etcd.example.com", "localhost"),
    ("ETCD_PORT", "2390", lambda s: s.unused.etcd_port, 2390, 2379),
    (
        "CONTROL_PLANE_API_URL",
        "http://a:1",
        lambda s: s.unused.control_plane_api_url,
        "http://a:1",
        "http://localhost:8080",
    ),
    ("LEADER_LEASE_TTL", "21", lambda s: s.replica.lease_ttl_s, 21.0, 15.0),
    ("RECONCILE_INTERVAL", "7", lambda s: s.workers.reconcile_s, 7.0, 30.0),
    ("LAB_START_TIMEOUT", "90", lambda s: s.lablets.start_timeout_s, 90.0, None),
    ("CONFIG_EXTRACT_ON_STOP", "false", lambda s: s.lablets.extract_on_stop, False, True),
    ("PORT_RANGE_START", "15000", lambda s: s.ports.range, (15000, 20000), (10000, 20000)),
    ("PORT_RANGE_END", "10010", lambda s: s.ports.range, (10000, 10010), (10000, 20000)),
    ("PORTS_PER_INSTANCE_MAX", "5", lambda s: s.ports.per_instance_max, 5, 50),
    ("LDS_API_URL", "http://lds:1", lambda s: s.lds.url, "http://lds:1", "http://localhost:8081"),
    ("LDS_API_TIMEOUT", "3.5", lambda s: s.lds.url_timeout_s, 3.5, 30.0),
    ("LDS_API_TOKEN", "token", lambda s: reveal(s.lds.token), "token", None),
    ("LDS_DEPLOYMENTS_CONFIG", "/a.yaml", lambda s: s.lds.path, "/a.yaml", "config/lds_deployments.yaml"),
    ("LDS_DEFAULT_TIMEOUT", "4.5", lambda s: s.lds.timeout_s, 4.5, 30.0),
    ("LDS_SELECTION_STRATEGY", "priority", lambda s: s.lds.strategy, "priority", "round-robin"),
    ("S3_ENDPOINT", "http://s3:1", lambda s: s.content.endpoint, "http://s3:1", "http://localhost:9000"),
    ("S3_ACCESS_KEY", "access", lambda s: reveal(s.content.access_key), "access", None),
    ("S3_SECRET_KEY", "secret", lambda s: reveal(s.content.secret_key), "secret", None),
    ("LABLET_CONTROLLER_INSTANCE_ID", "replica-a", lambda s: s.replica.instance_id == "replica-a", True, False),
]
OWN: list[tuple[str, str, Effect, object, object]] = [
    ("VKPROVIDER_API_QPS", "7", lambda s: s.kube.qps, 7.0, 1000.0),
    ("VKPROVIDER_API_BURST", "8", lambda s: s.kube.burst, 8, 2000),
    ("VKPROVIDER_API_IN_FLIGHT", "9", lambda s: s.kube.in_flight_max, 9, 64),
    ("VKPROVIDER_GRADER_TIMEOUT", "2.5", lambda s: s.grader.timeout_s, 2.5, 60.0),
    ("VKPROVIDER_WORKLOAD_LEVELS", "3", lambda s: s.replica.workload_levels, 3, 10),
    ("VKPROVIDER_CONTENT_TIMEOUT", "3", lambda s: s.content.timeout_s, 3.0, 60.0),
    ("VKPROVIDER_EVENTS_RETRY", "5", lambda s: s.http.events_retry_s, 5.0, 600.0),
]
"""Of our own variables those that a group passes to a part whose tests set the group's field."""
ALL = {variable: value for variable, value, *_ in TABLE}


@pytest.mark.parametrize(
    ("variable", "value", "effect", "seen", "default"), TABLE + OWN, ids=[row[0] for row in TABLE + OWN]
)
def test_variable(variable: str, value: str, effect: Effect, seen: object, default: object) -> None:
    assert effect(Settings.from_environment({variable: value})) == seen
    assert effect(Settings.from_environment({variable: ""})) == default
    assert effect(Settings.from_environment({})) == default


def test_every_variable_of_the_lablet_controller_is_in_the_table() -> None:
    assert len(ALL) == 20
    known = {str(field.validation_alias) for group in groups() for field in variables(group).values()}
    assert set(ALL) <= known


def test_all_variables_together() -> None:
    settings = Settings.from_environment(ALL | {"PORT_RANGE_END": "16000"})
    assert settings.ports.range == (15000, 16000)
    assert settings.lablets.start_timeout_s == 90


def test_instance_ids_are_unique() -> None:
    assert len({Settings.from_environment({}).replica.instance_id for _ in range(20)}) > 15


def test_variables_without_effect_are_named() -> None:
    unused = {"ETCD_HOST", "ETCD_PORT", "CONTROL_PLANE_API_URL"}
    assert Settings.from_environment({}).ignored == []
    assert Settings.from_environment(dict.fromkeys(unused, "")).ignored == []
    assert set(Settings.from_environment(ALL | {"PORT_RANGE_END": "16000"}).ignored) == unused


def test_secrets_appear_nowhere() -> None:
    settings = Settings.from_environment({"S3_ACCESS_KEY": "top-access", "S3_SECRET_KEY": "top-secret"})
    stream = io.StringIO()
    log = structlog.wrap_logger(structlog.PrintLogger(stream), processors=[structlog.processors.JSONRenderer()])
    log.info("started", settings=settings, dump=settings.model_dump(), ignored=settings.ignored)
    for text in (repr(settings), str(settings), stream.getvalue(), json.dumps(settings.model_dump(), default=str)):
        assert "top-" not in text


@pytest.mark.parametrize("variable", ["LDS_API_TOKEN", "VKPROVIDER_GRADER_TOKEN", "S3_ACCESS_KEY", "S3_SECRET_KEY"])
def test_a_token_loses_its_line_break_and_may_hold_no_other(variable: str) -> None:
    settings = Settings.from_environment({variable: "a-token\n"})
    lds, grader, content = settings.lds, settings.grader, settings.content
    tokens = (lds.token, grader.token, content.access_key, content.secret_key)
    assert [reveal(token) for token in tokens if token is not None] == ["a-token"]
    with pytest.raises(ValidationError, match=variable) as caught:
        Settings.from_environment({variable: "a-\ntoken"})
    assert "token" not in str(caught.value)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("ETCD_PORT", "many"),
        ("LEADER_LEASE_TTL", "0"),
        ("RECONCILE_INTERVAL", "-1"),
        ("LAB_START_TIMEOUT", "soon"),
        ("CONFIG_EXTRACT_ON_STOP", "perhaps"),
        ("PORT_RANGE_START", "0"),
        ("PORT_RANGE_END", "9999"),
        ("PORT_RANGE_END", "70000"),
        ("LABLET_CONTROLLER_INSTANCE_ID", "No Name"),
        ("VKPROVIDER_LOG_LEVEL", "loud"),
    ],
)
def test_a_wrong_value_ends_the_command_and_names_the_variable(variable: str, value: str) -> None:
    with pytest.raises(ValidationError, match=variable):
        Settings.from_environment({variable: value})
    result = CliRunner().invoke(main, ["run"], env={variable: value})
    assert result.exit_code == 1
    assert "a setting is wrong" in result.output
    assert variable in result.output


def test_unknown_variables_are_none_of_our_business() -> None:
    assert Settings.from_environment({"PATH": "/bin", "HOME": "/"}).ignored == []


def test_addresses() -> None:
    assert Settings.from_environment({"POD_IP": "10.0.0.7"}).kubelet.internal_ip == "10.0.0.7"
    both = {"POD_IP": "10.0.0.7", "VKPROVIDER_INTERNAL_IP": "10.0.0.8"}
    assert Settings.from_environment(both).kubelet.internal_ip == "10.0.0.8"
    assert Settings.from_environment({}).kubelet.internal_ip is None
    assert ip_address(own_ip()).version == 4


def definitions_file(path: Path, table: Any) -> Settings:
    path.write_text(table if isinstance(table, str) else json.dumps(table))
    return Settings.from_environment({"VKPROVIDER_NODE_DEFINITIONS": str(path)})


def test_node_definitions_of_a_file_extend_the_shipped_ones(tmp_path: Path) -> None:
    settings = definitions_file(tmp_path / "extra.yaml", {"my-router": {"cpus": 2, "ram": 4096}})
    found = node_definitions(settings.content.node_definitions_file)
    assert set(found) == {*SHIPPED, "my-router"}
    assert node_definitions(Settings().content.node_definitions_file) == SHIPPED


@pytest.mark.parametrize("table", ["[1, 2", "- a", {"x": {"cpus": 1}}, {"x": {"cpus": "two", "ram": 1}}, {"x": None}])
def test_wrong_node_definitions_are_refused(tmp_path: Path, table: Any) -> None:
    settings = definitions_file(tmp_path / "wrong.yaml", table)
    with pytest.raises(InputError, match=r"SettingInvalid: VKPROVIDER_NODE_DEFINITIONS .*wrong\.yaml"):
        node_definitions(settings.content.node_definitions_file)


def test_missing_node_definitions_are_refused() -> None:
    with pytest.raises(InputError, match="SettingInvalid"):
        node_definitions("/nowhere.yaml")


def test_secrets_of_events_can_be_changed_without_a_gap() -> None:
    assert Settings.from_environment({}).http.events_secrets == []
    old, new = "old-secret-of-a-sender", "new-secret-of-a-sender"
    settings = Settings.from_environment({"VKPROVIDER_EVENTS_SECRET": f" {old}\t{new}\n"})
    assert settings.http.events_secrets == [("", old), ("", new)]
    assert old not in repr(settings)


def test_secret_of_events_may_be_of_one_deployment() -> None:
    given = "lds-us-west:0123456789abcdef 0123456789abcdef= not/an/id:0123456789abcdef"
    found = Settings.from_environment({"VKPROVIDER_EVENTS_SECRET": given}).http.events_secrets
    words = given.split()
    assert found == [("lds-us-west", "0123456789abcdef"), ("", words[1]), ("", words[2])]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("lds-us-west:too-short", "the secret has less than 16 characters"),
        ("correct horse b", "one of the 3 secrets, separated by blanks, has less than 16 characters"),
        ("a-secret-that-is-long b", "one of the 2 secrets, separated by blanks, has less than 16 characters"),
        ("fifteen-letters", "the secret has less than 16 characters; use `openssl rand -hex 32`"),
    ],
)
def test_a_short_secret_of_events_is_refused(value: str, message: str) -> None:
    with pytest.raises(ValidationError, match="VKPROVIDER_EVENTS_SECRET") as caught:
        Settings.from_environment({"VKPROVIDER_EVENTS_SECRET": value})
    assert message in str(caught.value)
    assert value not in str(caught.value)
    assert Settings.from_environment({"VKPROVIDER_EVENTS_SECRET": "sixteen-letters-"}).http.events_secrets


def test_secrets_are_read_from_a_mounted_folder(tmp_path: Path) -> None:
    """As a kubelet mounts a Secret: files that are links into a hidden folder."""
    hidden = tmp_path / "..2026"
    hidden.mkdir()
    for name, value in {
        "LDS_API_TOKEN": "of-the-file\n",
        "S3_ACCESS_KEY": "of-the-file",
        "S3_SECRET_KEY": "of-the-file",
        "VKPROVIDER_GRADER_URL": "\n",
        "notes": "no variable",
    }.items():
        (hidden / name).write_text(value)
        (tmp_path / name).symlink_to(hidden / name)
    of_environment = {"S3_ACCESS_KEY": "of-the-environment", "S3_SECRET_KEY": ""}
    given = {"VKPROVIDER_SECRETS_DIR": str(tmp_path), **of_environment}
    settings = Settings.from_environment(given)
    assert reveal(settings.lds.token) == "of-the-file"
    assert reveal(settings.content.access_key) == "of-the-environment"
    assert reveal(settings.content.secret_key) == "of-the-file", "an empty variable counts as unset"
    assert settings.grader.url == Settings().grader.url


def test_a_folder_of_secrets_that_cannot_be_read_ends_the_command(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["run"], env={"VKPROVIDER_SECRETS_DIR": str(tmp_path / "missing")})
    assert result.exit_code == 1
    assert "SettingInvalid: VKPROVIDER_SECRETS_DIR" in result.output
