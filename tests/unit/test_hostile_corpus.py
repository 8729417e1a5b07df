"""The hostile corpus over every parser, some hundred inputs each; `make faults ONLY=hostile` runs 10,000."""

import pytest

from tests.support.hostile import PARSERS, run


@pytest.mark.parametrize("parser", PARSERS)
def test_only_refusals_come_out(parser: str) -> None:
    found = run(parser, 0, 300)
    assert found.faults == []
    assert found.accepted + found.refused == 300
    assert found.accepted, "an input that is nearly valid gets beyond the first check"
