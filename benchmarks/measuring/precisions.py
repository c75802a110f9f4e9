"""The data types that are measured.

Types that this processor would emulate are too slow. If `SPACY_ELMO_KERNELS` chooses the kernels of a slower processor,
which has no instructions for these types, only float32 is measured.
"""

import torch

from spacy_elmo.bilm.kernels import native
from spacy_elmo.bilm.kernels.instructions import has_instructions
from spacy_elmo.bilm.matmul_precision import Precision

ALL: tuple[Precision, ...] = ("float32", "bfloat16", "int8")
LIMITED = native.processor() not in (None, *native.processors()[:1])
FAST = tuple(
    name
    for name in ALL
    if name == "float32" or not LIMITED and has_instructions(name, torch.device("cpu")) is not False
)
TRAINED = tuple(name for name in FAST if name != "int8")
"""The data types in which training is measured too."""
