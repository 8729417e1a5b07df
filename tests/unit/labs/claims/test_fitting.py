"""A row that does not fit into the claims is refused alone."""

import base64
from random import Random

import msgspec
import pytest

from tests.unit.labs import builders
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.claims.document import StoredClaims
from vkprovider.labs.pure.claims.merge import fit
from vkprovider.platform.errors import InputError

DICE = Random(15)


def row(number: int, kilobytes: int = 0, **fields: str) -> Claim:
    noise = base64.b64encode(DICE.randbytes(kilobytes * 768)).decode()
    return builders.claim(pod_uid=f"{number:08}", pod=f"p{number}", outcome_message=noise, **fields)


def stored(*rows: Claim) -> StoredClaims:
    return StoredClaims({claim.pod_uid: claim for claim in rows})


def test_all_rows_are_written_when_they_fit() -> None:
    some = stored(row(1), row(2))
    fitting = fit(some, {}, worker="w1", installation="i")
    assert (fitting.refused, fitting.withheld) == (frozenset(), frozenset())
    assert fitting.data


def test_rows_of_one_tenant_that_fill_the_store_are_refused_and_all_others_are_written() -> None:
    small = [row(number) for number in range(1, 40)]
    large = [row(number, kilobytes=250) for number in range(50, 58)]
    saved = {claim.pod_uid: claim for claim in small[:20]}
    fitting = fit(stored(*large, *small), saved, worker="w1", installation="i")
    assert fitting.refused < {claim.pod_uid for claim in large}
    assert len(fitting.refused) == 4, "as few as possible"
    assert not fitting.withheld
    assert fitting.binary


def test_a_row_with_a_lab_is_never_refused() -> None:
    rows = [row(number, kilobytes=250, lab_id="lab") for number in range(1, 7)]
    with pytest.raises(InputError, match="exceed one ConfigMap") as caught:
        fit(stored(*rows), {}, worker="w1", installation="i")
    assert caught.value.reason == "ClaimStoreFull"


def test_a_saved_row_that_grows_too_much_stays_as_it_was() -> None:
    before = [row(number, lab_id=f"lab-{number}") for number in range(1, 7)]
    grown = [row(number, kilobytes=300, lab_id=f"lab-{number}") for number in range(1, 6)]
    changed = msgspec.structs.replace(before[5], closing_reason="SessionEnded")
    saved = {claim.pod_uid: claim for claim in before}
    fitting = fit(stored(*grown, changed), saved, worker="w1", installation="i")
    assert len(fitting.withheld) == 1
    assert changed.pod_uid not in fitting.withheld, "another lablet's work is collected"
    assert not fitting.refused
