"""Kernels compiled by GCC and by Clang, for x86 and for ARM, compute the same bits."""

import shutil
import subprocess
from pathlib import Path

import pytest

from spacy_elmo.bilm.kernels import native

ROOT = Path(__file__).parents[3]
KERNELS = ROOT / "spacy_elmo" / "bilm" / "kernels"
RUNNERS = {"gcc": [], "clang": [], "aarch64-linux-gnu-gcc": ["qemu-aarch64"]}
"""Each compiler, and what runs its programs."""
FLAGS = ["-O3", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-fno-wrapv"]
"""Those of setup.py."""


def test_the_flags_are_those_of_the_package():
    assert f"FLAGS = {FLAGS}".replace("'", '"') in (ROOT / "setup.py").read_text()


@pytest.fixture(scope="module")
def digests(tmp_path_factory):
    """Return the output of a compiler's program: for each kind of processor, a digest of each computation."""
    known = {}

    def of(compiler: str) -> dict[str, list[str]]:
        if missing := [name for name in (compiler, *RUNNERS[compiler]) if not shutil.which(name)]:
            pytest.skip(f"there is no {missing[0]}")
        if compiler not in known:
            program = tmp_path_factory.mktemp("digests") / "digests"
            # GCC has already compiled the library.
            kernels = [native.path()] if compiler == "gcc" else ["-static", *KERNELS.glob("*.c")]
            sources = [Path(__file__).with_name("digests.c"), *kernels]
            options = [*FLAGS, "-w", f"-DABI={native.ABI}", f"-I{KERNELS}", "-o", program]
            subprocess.run([compiler, *options, *sources, "-lm"], check=True)
            printed = subprocess.check_output([*RUNNERS[compiler], program], text=True)
            known[compiler] = {}
            for line in printed.splitlines():
                kind, _, rest = line.partition(" ")
                known[compiler].setdefault(kind, []).append(rest)
        return known[compiler]

    return of


@pytest.mark.parametrize("compiler", RUNNERS)
def test_the_same_bits(digests, compiler):
    expected = digests("gcc")["float32_portable"]
    assert len(expected) == 15 and len(set(expected)) == 15
    found = digests(compiler)
    assert "float32_portable" in found and ("float32_neon" in found) == ("aarch64" in compiler)
    for kind, values in found.items():
        assert values == expected, kind
