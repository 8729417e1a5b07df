"""The Helm chart is what the generator makes of the kustomization, and its schema refuses what nobody can mean."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from pydantic import AliasChoices

from tools import stale
from tools.generate import variables
from tools.helm import chart, values
from tools.render import INSTALL, ROOT
from vkprovider.labs.settings.cluster import Settings

FILES = chart.files(INSTALL.read_text(encoding="utf-8"))
BY_HAND = {
    ".helmignore",
    "templates/_helpers.tpl",
    "templates/settings.yaml",
    "templates/doors.yaml",
    "templates/defaultmux.yaml",
    "templates/NOTES.txt",
}
DEFAULTS: dict[str, Any] = yaml.safe_load(FILES[chart.CHART / "values.yaml"])
SCHEMA: dict[str, Any] = yaml.safe_load(FILES[chart.CHART / "values.schema.json"])


def test_chart_has_no_other_files() -> None:
    found = {path.relative_to(ROOT) for path in (ROOT / chart.CHART).rglob("*") if path.is_file()}
    assert found == FILES.keys() | {chart.CHART / name for name in BY_HAND}


def test_every_object_of_the_kustomization_is_in_a_template() -> None:
    text = "".join(text for path, text in FILES.items() if path.parent.name == "templates")
    objects = list(yaml.safe_load_all(INSTALL.read_text(encoding="utf-8")))
    kinds = [each["kind"] for each in objects]
    for kind in set(kinds):
        assert text.count(f"\nkind: {kind}\n") >= kinds.count(kind), kind
    assert chart.SYSTEM not in text, "the namespace is that of the release"


def documents() -> Iterator[str]:
    """Yield the documents of the generated templates, each after the line before it, such as its condition."""
    for path, text in FILES.items():
        if path.parent.name == "templates":
            before, *parts = text.split("\n---\n")
            for part in parts:
                yield f"{before.splitlines()[-1]}\n---\n{part}"
                before = part


def test_a_string_stays_one_whatever_word_it_is() -> None:
    """YAML reads `no`, `true`, `null` and `123` as something else, unless they are quoted."""
    plain = set()
    for path in (ROOT / chart.CHART / "templates").glob("*.yaml"):
        text = path.read_text(encoding="utf-8")
        plain |= set(re.findall(r"^ *(?:- )?[\w./-]+: \{\{ ((?:(?! quote ).)*?) \}\}$", text, re.MULTILINE))
    numbers = {".Values.replicaCount", ".Values.mux.replicaCount", ".Values.portal.replicaCount"}
    assert plain == {*numbers, ".allocateNodePorts", 'printf "%s/(.*)" .'}


@pytest.mark.parametrize(
    ("kind", "value"),
    [("PodDisruptionBudget", "podDisruptionBudget.enabled"), ("NetworkPolicy", "networkPolicy.enabled")],
)
def test_the_switch_of_a_kind_is_that_of_all_programs(kind: str, value: str) -> None:
    found = [text for text in documents() if f"\nkind: {kind}\n" in text]
    assert len(found) >= 3, "of provider, mux and portal"
    for text in found:
        assert f".Values.{value} " in text.partition("\n")[0], text
    if kind == "NetworkPolicy":
        programs = [text for text in found if "\n  ingress:\n" in text]
        assert len(programs) == 3
        assert all(".Values.networkPolicy.extraEgress" in text for text in programs)


def test_a_drain_ends_where_a_program_has_one_replica() -> None:
    found = [text for text in documents() if "\nkind: PodDisruptionBudget\n" in text]
    assert all("\n  maxUnavailable: 1\n" in text and "minAvailable" not in text for text in found)


def test_what_the_policy_keeps_in_one_namespace_gives_no_rights_to_another() -> None:
    """`vkprovider-installation` refuses bindings with its label whose subjects are elsewhere."""
    bindings = [text for text in documents() if re.search(r"^kind: (Cluster)?RoleBinding$", text, re.MULTILINE)]
    kept = [text for text in bindings if "vkprovider.io/installed-in:" in text]
    assert 0 < len(kept) < len(bindings)
    for text in kept:
        homes = re.findall(r"^  namespace: (.*)$", text.partition("\nsubjects:\n")[2], re.MULTILINE)
        assert set(homes) <= {'"{{ .Release.Namespace }}"'}, text


def test_defaults_pass_the_schema() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    jsonschema.validate(DEFAULTS, SCHEMA)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("replicaCount", 3),
        ("settings", {"WORKER_PROBE_SECONDS": 2.5, "VKPROVIDER_LOG_LEVEL": "debug", "CONFIG_EXTRACT_ON_STOP": False}),
        ("settings", {"VKPROVIDER_KEPT_BYTES_MAX": "1000000", "CONFIG_EXTRACT_ON_STOP": "false"}),
        ("image", {**DEFAULTS["image"], "digest": f"sha256:{'0' * 64}"}),
        ("imagePullSecrets", [{"name": "registry"}]),
        ("resources", {"limits": {"memory": "1Gi", "cpu": 1}}),
        ("global", {"anything": True}),
    ],
)
def test_schema_accepts(path: str, value: object) -> None:
    jsonschema.validate({**DEFAULTS, path: value}, SCHEMA)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("replicas", 3, "'replicas' was unexpected"),
        ("replicaCount", "3", "'3' is not of type 'integer'"),
        ("image", {"name": "x"}, "'name' was unexpected"),
        ("image", {**DEFAULTS["image"], "digest": "latest"}, "does not match"),
        ("image", {**DEFAULTS["image"], "pullPolicy": "Sometimes"}, "is not one of"),
        ("imagePullSecrets", ["registry"], "is not of type 'object'"),
        ("settings", {"WORKER_PROBE_SECOND": 1}, "'WORKER_PROBE_SECOND' was unexpected"),
        ("settings", {"WORKER_PROBE_SECONDS": -1}, "-1 is less than or equal to the minimum"),
        ("settings", {"VKPROVIDER_LOG_LEVEL": "loud"}, "'loud' is not one of"),
        ("settings", {"VKPROVIDER_EVENTS_SECRET": "x"}, "'VKPROVIDER_EVENTS_SECRET' was unexpected"),
        ("settings", {"VKPROVIDER_HTTP_PORT": 8083}, "'VKPROVIDER_HTTP_PORT' was unexpected"),
        ("policies", {"enabled": "yes"}, "'yes' is not of type 'boolean'"),
        ("defaultMux", {"portRange": "20000 to 20099"}, "does not match"),
        ("defaultMux", {"maxPorts": 0}, "0 is less than the minimum"),
        ("workbench", {"images": ["a', 'b"]}, "does not match"),
        ("prepull", {"config": {"image": "x"}}, "'image' was unexpected"),
    ],
)
def test_schema_refuses(path: str, value: object, said: str) -> None:
    with pytest.raises(jsonschema.ValidationError, match=said):
        jsonschema.validate({**DEFAULTS, path: value}, SCHEMA)


def test_settings_of_the_chart_are_those_of_the_program() -> None:
    """All but secrets, and what the chart itself sets: those stand in its Deployment, or its objects depend on them."""
    known = set()
    for field in Settings.model_fields.values():
        assert isinstance(field.annotation, type)
        for each in variables(field.annotation).values():
            alias = each.validation_alias
            if "SecretStr" not in str(each.annotation):
                known.add(alias.choices[0] if isinstance(alias, AliasChoices) else alias)
    deployment = FILES[chart.CHART / "templates" / "deployment.yaml"]
    fixed = {name for name in known if f"- name: {name}\n" in deployment} | values.BY_CHART
    assert set(SCHEMA["properties"]["settings"]["properties"]) == known - fixed


def test_stale_file_is_named_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def made() -> dict[Path, str]:
        return {Path("folder/page.md"): "new\n"}

    assert stale.run("tools.x", ["--check"], tmp_path, made) == 1
    assert "folder/page.md is not as generated: run `make generate`" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())
    assert stale.run("tools.x", [], tmp_path, made) == 0
    assert (tmp_path / "folder" / "page.md").read_text() == "new\n"
    assert stale.run("tools.x", ["--check"], tmp_path, made) == 0
    assert stale.run("tools.x", ["--wrong"], tmp_path, made) == 2
