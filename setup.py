"""What setup.cfg cannot say: the part in C, which is built where there is a compiler and not missed elsewhere."""

from setuptools import Extension, setup

# No -ffast-math: not-a-number has to stay one, because training stops at it.
FLAGS = ["-O3", "-fopenmp-simd", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast"]

setup(
    ext_modules=[
        Extension(
            "spacy_elmo.bilm.kernels._native",
            [
                f"spacy_elmo/bilm/kernels/{name}.c"
                for name in ("cell", "fused_lstm", "int8", "pooling", "softmax_terms", "threads")
            ],
            depends=[
                f"spacy_elmo/bilm/kernels/{name}.h"
                for name in ("fused_lstm", "lanes", "numbers", "threads")
            ],
            extra_compile_args=FLAGS,
            optional=True,
        )
    ]
)
