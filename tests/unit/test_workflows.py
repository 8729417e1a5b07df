"""What CI's workflows name and promise: the check of them on made-up ones, and the order of those in `.github`."""

import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.support import skips
from tools.helm import program as helm
from tools.matrix import programs as matrix
from tools.workflows import check
from vkpsandbox.controlplane import build
from vkpsandbox.controlplane.build import GoModule
from vkpsandbox.node import programs

MADE = {"check", "unit", "faults", "version"}
TREE = {"docs/upgrade.md", ".ci/run", "go.mod", ".github/actions/prepare", "tests/unit"}
FOLDER = check.ROOT / ".github"


def exists(path: str) -> bool:
    return path.removeprefix("./") in TREE


@pytest.mark.parametrize(
    ("script", "wanted"),
    [
        ("make check", {"check"}),
        ("make check unit", {"check", "unit"}),
        ('CI=true make test 2>&1 | tee "$log"', {"test"}),
        ('make -j2 --silent faults ONLY=upgrade URL="$HERE/x"', {"faults"}),
        ("make check && make unit; if make site; then\n  make wheel\nfi", {"check", "unit", "site", "wheel"}),
        ('push "image:$(make version)" "$(echo a | b)/$(make sbom)"', {"version", "sbom"}),
        ("make \\\n  chart", {"chart"}),
        ("make check # then make tea\n# make coffee, that's all\nmake unit", {"check", "unit"}),
        ('echo "make test ended with $code"; remake it', set()),
    ],
)
def test_targets_that_a_script_makes(script: str, wanted: set[str]) -> None:
    assert check.wanted_targets(script) == wanted


@pytest.mark.parametrize(
    ("script", "wanted"),
    [
        ("HELM=1 .ci/run", {".ci/run"}),
        ("./.ci/run && cat ./docs/upgrade.md", {".ci/run", "docs/upgrade.md"}),
        ('--notes "Changes: CHANGELOG.md. How: docs/upgrade.md."', {"CHANGELOG.md", "docs/upgrade.md"}),
        ("pytest tests/unit tests/component/test_*.py", {"tests/unit", "tests/component/test_*.py"}),
        ("cp go.mod --to=tools/go.mod", {"go.mod", "tools/go.mod"}),
        ('cat dist/FILES build/x/y .venv/bin/x ~/.cache/x /dev/null "$home/charts" https://example.com/x', set()),
        ("# as docs/gone.md says\necho v1.2 # docs/gone.md", set()),
    ],
)
def test_paths_that_a_script_names(script: str, wanted: set[str]) -> None:
    assert check.wanted_paths(script) == wanted


def test_a_script_is_told_what_it_wants_in_vain() -> None:
    script = "make check; make tee; cat docs/upgrade.md docs/gone.md"
    assert check.faults_of_script("run", script, MADE, exists) == [
        "run: wants `make tee`, and there is no such target",
        "run: names docs/gone.md, and the checkout has no such path",
    ]
    (said,) = check.faults_of_script("run", "make 'check", MADE, exists)
    assert said.startswith("run: cannot be read as a shell script: ")


def workflow(**job: Any) -> dict[str, Any]:
    return {"jobs": {"first": {"steps": []}, "second": job}}


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (workflow(needs="first"), []),
        (workflow(needs=["first", "third"]), ["job second needs third, and there is no such job"]),
        (workflow(needs="seconds"), ["job second needs seconds, and there is no such job"]),
        (workflow(steps=[{"run": "make unit FOR=${{ matrix.of }}"}]), []),
        (workflow(steps=[{"run": "make units"}]), ["wants `make units`, and there is no such target"]),
        (workflow(uses="./.github/actions/prepare"), []),
        (workflow(uses="./.github/gone.yaml"), ["names ./.github/gone.yaml, and the checkout has no such path"]),
        (workflow(uses="actions/checkout@v6"), []),
        (workflow(steps=[{"with": {"key": "${{ runner.arch }}-${{ hashFiles('go.mod') }}"}}]), []),
        (
            workflow(steps=[{"with": {"key": "${{ hashFiles('go.mod', 'go.summ') }}"}}]),
            ["names go.summ, and the checkout has no such path"],
        ),
        (
            {"on": {"push": {"paths": ["tests/unit", "tests/ring"]}}},
            ["names tests/ring, and the checkout has no such path"],
        ),
        ({"runs": {"steps": [{"run": "make tee"}]}}, ["wants `make tee`, and there is no such target"]),
    ],
)
def test_a_workflow_is_told_what_it_wants_in_vain(document: dict[str, Any], said: list[str]) -> None:
    assert check.faults("x", document, MADE, exists) == [f"x: {each}" for each in said]


def test_a_checkout_is_read_whole(tmp_path: Path) -> None:
    files = {
        "Makefile": ".PHONY: check gone\nVERSION := 1\ncheck: x\n\t@gone\nsbom:\n",
        ".ci/run": "make check; make run\n",
        ".github/workflows/a.yaml": "jobs: {b: {steps: [{run: make sbom workflow}]}}\n",
        ".github/actions/prepare/action.yaml": "runs: {steps: [{run: cat .ci/run docs/x.md; make action}]}\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert check.faults_of_checkout(tmp_path) == [
        ".ci/run: wants `make run`, and there is no such target",
        ".github/actions/prepare/action.yaml: wants `make action`, and there is no such target",
        ".github/actions/prepare/action.yaml: names docs/x.md, and the checkout has no such path",
        ".github/workflows/a.yaml: wants `make workflow`, and there is no such target",
    ]


def test_actionlint_is_pinned_and_kept_apart() -> None:
    module = check.module()
    assert f"tool {check.PACKAGE}\n" in module.go_mod.decode()
    version = module.title.removeprefix("actionlint ")
    assert f"github.com/rhysd/actionlint {version} h1:" in module.go_sum.decode()


class Workflow(NamedTuple):
    """One file of `.github/workflows`."""

    on: dict[str, Any]
    jobs: dict[str, Any]
    permissions: dict[str, str]

    def runs(self, job: str) -> list[str]:
        return [step["run"] for step in self.jobs[job]["steps"] if "run" in step]


def read(name: str) -> Workflow:
    document = yaml.load((FOLDER / "workflows" / name).read_text(), Loader=yaml.BaseLoader)  # noqa: S506 (`on` is a text)
    return Workflow(document["on"], document["jobs"], document["permissions"] or {})


def test_each_push_and_pull_request_has_two_quick_verdicts_and_then_the_whole() -> None:
    tests = read("tests.yaml")
    assert tests.on["push"] == {"branches": ["**"]}
    assert tests.on["pull_request"] == ""
    assert tests.runs("check") == ["make check", "make unit"]
    assert tests.runs("component") == ["make component"]
    assert all("needs" not in tests.jobs[job] for job in ("check", "component"))
    assert tests.runs("test") == ["make test"]
    assert set(tests.jobs["test"]["needs"]) == {"check", "component"}
    assert tests.jobs["test"]["steps"][0]["with"]["fetch-depth"] == "0"  # for tools.changed


def test_each_night_has_the_rest_on_every_version() -> None:
    nightly = read("nightly.yaml")
    assert nightly.on["schedule"]
    assert nightly.runs("acceptance") == ["make acceptance"]
    assert nightly.runs("faults") == ["make faults"]
    assert nightly.runs("matrix") == ["make matrix KUBERNETES=${{ matrix.kubernetes }}"]
    assert nightly.jobs["matrix"]["strategy"]["matrix"] == {"kubernetes": matrix.versions()}


def test_the_job_of_the_ordinary_node_fails_where_it_runs_no_test() -> None:
    """sudo drops CI, without which no skip fails a run; and the list of skips that may be must not name that folder."""
    (run,) = read("nightly.yaml").runs("node")
    kept = re.search(r"sudo --preserve-env=(\S+) make node", run)
    assert kept, run
    assert "CI" in kept[1].split(",")
    rows = skips.allowed((check.ROOT / "tests" / "skips.txt").read_text())
    found = [path.relative_to(check.ROOT).as_posix() for path in (check.ROOT / "tests" / "node").glob("test_*.py")]
    assert found
    assert not [path for path in found if any(path.startswith(row) or row.startswith(path) for row in rows)]


def test_a_release_waits_for_all_of_them() -> None:
    release = read("release.yaml")
    asked = {release.jobs[job]["uses"] for job in release.jobs["publish"]["needs"]}
    assert asked == {"./.github/workflows/tests.yaml", "./.github/workflows/nightly.yaml"}
    for workflow_ in ("tests.yaml", "nightly.yaml"):
        assert "workflow_call" in read(workflow_).on


def test_only_the_release_writes() -> None:
    for path in (FOLDER / "workflows").iterdir():
        found = read(path.name)
        assert found.permissions == {}, path.name
        for name, job in found.jobs.items():
            if (path.name, name) != ("release.yaml", "publish"):
                assert job["permissions"] == {"contents": "read"}, f"{path.name}: {name}"
            for step in job.get("steps", []):
                if step.get("uses", "").startswith("actions/checkout@"):
                    assert step["with"]["persist-credentials"] == "false", f"{path.name}: {name}"


@pytest.mark.parametrize(
    ("module", "where"),
    [
        (build.control_plane(), "vkpsandbox/controlplane/go"),
        (helm.module(), "tools/helm"),
        *((programs.module_of(name), f"vkpsandbox/node/go/{name}") for name in programs.MODULES),
        (check.module(), "tools/workflows"),
    ],
    ids=lambda each: each.name if isinstance(each, GoModule) else "",
)
def test_a_cache_is_keyed_by_the_pins_of_what_it_keeps(module: GoModule, where: str) -> None:
    steps = yaml.safe_load((FOLDER / "actions/prepare/action.yaml").read_text())["runs"]["steps"]
    path = f"~/.cache/vkprovider/{module.name}"
    (kept,) = (step["with"] for step in steps if step.get("with", {}).get("path") == path)
    assert kept["key"].endswith(f"-${{{{ hashFiles('{where}/go.mod', '{where}/go.sum') }}}}")
    assert module.go_mod == (check.ROOT / where / "go.mod").read_bytes()
