"""Every exception from a lint rule names the rule and says why."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
GOOD = re.compile(r"# noqa: [A-Z]+[0-9]+(, [A-Z]+[0-9]+)* \(.+\)")
IGNORED = re.compile(r"# type: ignore\[[a-z-]+(, [a-z-]+)*\]")


def test_every_noqa_carries_its_rule_and_its_reason() -> None:
    lacking = [
        f"{path.relative_to(ROOT)}:{number}"
        for folder in ("vkprovider", "tunnels", "vkpsim", "vkpsandbox", "hub", "tools", "bench", "tests")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if ("# noqa" in line and not GOOD.search(line)) or ("# type: ignore" in line and not IGNORED.search(line))
    ]
    lacking = [place for place in lacking if not place.startswith("tests/unit/test_lint_exceptions.py")]
    assert lacking == []
