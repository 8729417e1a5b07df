"""The deployments file, and LDS_API_URL alone (R000-092, R000-093, R000-097; C33)."""

from pathlib import Path

import pytest
import trustme
import yaml

from vkprovider.labs.lds import config
from vkprovider.labs.lds.config import UNLIMITED, Configured
from vkprovider.labs.pure.session.deployments import LdsDeployment
from vkprovider.labs.settings.cluster import Settings
from vkprovider.labs.settings.services import LdsSettings
from vkprovider.platform.errors import InputError

SEED = """
lds_deployments:
  - id: lds-us-west
    base_url: https://lds-us-west.example.com/
    region: us-west-2
    capacity: 500
    priority: 1
    enabled: true
  - id: lds-eu-central
    base_url: https://lds-eu-central.example.com/lds
    region: eu-central-1
    capacity: 300
    priority: 2
    enabled: false
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lds_deployments.yaml"


def test_file(path: Path) -> None:
    path.write_text(SEED)
    read = config.read(LdsSettings(path=str(path), url="http://not-used", timeout_s=9.0))
    west = LdsDeployment("lds-us-west", "https://lds-us-west.example.com", 500, region="us-west-2", priority=1)
    eu = LdsDeployment(
        "lds-eu-central",
        "https://lds-eu-central.example.com/lds",
        300,
        region="eu-central-1",
        priority=2,
        enabled=False,
    )
    assert read == (Configured(west, 9.0), Configured(eu, 9.0))


def test_url_alone(path: Path) -> None:
    read = config.read(LdsSettings(path=str(path), url="http://lds:8081", url_timeout_s=4.0))
    assert read == (Configured(LdsDeployment("default", "http://lds:8081", UNLIMITED), 4.0),)


def test_ca_file_is_read(path: Path) -> None:
    authority = path.with_name("ca.pem")
    trustme.CA().cert_pem.write_to_path(authority)
    entry = {"id": "a", "base_url": "https://a", "capacity": 1, "ca_file": str(authority), "token_file": "/no/matter"}
    path.write_text(yaml.safe_dump({"lds_deployments": [entry]}))
    [read] = config.read(LdsSettings(path=str(path)))
    assert read.ca_bundle == authority.read_text()
    assert read.token_file == "/no/matter"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "lds_deployments: Input should be a valid dictionary"),
        ("[]", "lds_deployments: Input should be a valid dictionary"),
        ("lds_deployments: 1", "lds_deployments: Input should be a valid tuple"),
        ("{", "is not YAML"),
        ("\x00", "is not YAML"),
        ("lds_deployments: [{id: a, base_url: http://a, capacity: 1, weight: 2}]", "lds_deployments.0.weight: Extra"),
        ("lds_deployments: [{base_url: http://a, capacity: 1}]", "lds_deployments.0.id: Field required"),
        ("lds_deployments: [{id: a b, base_url: http://a, capacity: 1}]", "lds_deployments.0.id: String should match"),
        ("lds_deployments: [{id: a, base_url: http://a, capacity: -1}]", "lds_deployments.0.capacity: Input should be"),
        ("lds_deployments: [{id: a, base_url: a.example.com, capacity: 1}]", "must be http://host or https://host"),
        ("lds_deployments: [{id: a, base_url: 'http://u:geheim@a', capacity: 1}]", "must have no user"),
        ("lds_deployments: [{id: a, base_url: 'http://a/?token=geheim', capacity: 1}]", "must have no user, query"),
        ("lds_deployments: [{id: a, base_url: 'http://[geheim', capacity: 1}]", "is not a URL"),
        (
            "lds_deployments: [{id: a, base_url: http://a, capacity: 1}, {id: a, base_url: http://b, capacity: 1}]",
            "two deployments have the id a",
        ),
        (
            "lds_deployments: [{id: a, base_url: http://a, capacity: 1}, {id: b, base_url: http://a/, capacity: 1}]",
            "two deployments have the base_url http://a",
        ),
        ("lds_deployments: [{id: a, base_url: https://a, capacity: 1, ca_file: /none}]", "a: ca_file cannot be read"),
        (
            "lds_deployments: [{id: a, base_url: https://a, capacity: 1, ca_file: /dev/null}]",
            "a: ca_file /dev/null holds no certificate",
        ),
        ("#" * (2**20 + 1), "is longer than 1 MiB"),
    ],
)
def test_wrong_file(path: Path, text: str, words: str) -> None:
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        config.read(LdsSettings(path=str(path)))
    assert caught.value.reason == "SettingInvalid"
    assert caught.value.message.startswith(f"LDS_DEPLOYMENTS_CONFIG {path}: ")
    assert words in caught.value.message
    assert "geheim" not in caught.value.message


def test_missing_file(path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        config.read(LdsSettings(path=str(path)))


def test_wrong_url(path: Path) -> None:
    with pytest.raises(InputError, match="LDS_API_URL must be http://host or https://host"):
        config.read(LdsSettings(path=str(path), url="lds:8081"))


def test_no_lds_where_no_setting_names_one() -> None:
    """R000-121: the default address alone switches nothing on."""
    settings = Settings.from_environment({"LDS_API_TIMEOUT": "3", "LDS_SELECTION_STRATEGY": "priority"})
    assert not config.takes_part(settings.lds)


def test_settings() -> None:
    environment = {
        "LDS_API_URL": "http://lds",
        "LDS_API_TIMEOUT": "4",
        "LDS_API_TOKEN": "secret",
        "LDS_DEFAULT_TIMEOUT": "5",
        "LDS_SELECTION_STRATEGY": "priority",
    }
    lds = Settings.from_environment(environment).lds
    assert lds == LdsSettings(url="http://lds", strategy="priority", timeout_s=5.0, url_timeout_s=4.0, token="secret")
    assert (lds.one_url, lds.path) == ("http://lds", "config/lds_deployments.yaml")
    assert config.takes_part(lds)
    assert "secret" not in repr(lds)


def test_settings_of_the_file_alone() -> None:
    lds = Settings.from_environment({"LDS_DEPLOYMENTS_CONFIG": "/etc/lds.yaml"}).lds
    assert lds == LdsSettings(path="/etc/lds.yaml")
    assert lds.one_url == ""
    assert config.takes_part(lds)


def test_a_file_at_the_default_path_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R000-097: LDS_DEPLOYMENTS_CONFIG has a default path, and a file there is read."""
    monkeypatch.chdir(tmp_path)
    lds = Settings.from_environment({}).lds
    assert not config.takes_part(lds)
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "lds_deployments.yaml").write_text("lds_deployments: []")
    assert config.takes_part(lds)
    assert config.read(lds) == ()
