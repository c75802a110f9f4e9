"""What setup.cfg cannot say: the part in C, which is built where there is a compiler and not missed elsewhere."""

import runpy
from pathlib import Path

from setuptools import Extension, setup

KERNELS = Path("spacy_elmo/bilm/kernels")

# No -ffast-math: not-a-number has to stay one, because training stops at it.
FLAGS = ["-O3", "-fopenmp-simd", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast"]

setup(
    ext_modules=[
        Extension(
            "spacy_elmo.bilm.kernels._native",
            sorted(map(str, KERNELS.glob("*.c"))),
            depends=sorted(map(str, [*KERNELS.glob("*.h"), KERNELS / "abi.py"])),
            define_macros=[("ABI", str(runpy.run_path(str(KERNELS / "abi.py"))["ABI"]))],
            extra_compile_args=FLAGS,
            optional=True,
        )
    ]
)
