"""Some damaged files for every loader: each is loaded with its content, or rejected by one error that names the file.

`make fuzz` does the same for any time, with other seeds.
"""

import sys

import pytest

from tests.fuzz.run import TARGETS, run
from tests.fuzz.target import DEFECTS, REFUSED

_SEEDS = range(15)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are Linux's"),
]


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_damaged_files(name):
    outcomes = dict(run(name, _SEEDS))
    assert outcomes.keys() == set(_SEEDS)
    assert {seed: o for seed, o in outcomes.items() if o.kind in DEFECTS} == {}
    assert any(outcome.kind == REFUSED for outcome in outcomes.values())
