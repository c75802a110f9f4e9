"""The number types that are measured. Types that this processor would emulate are left out, because they are too
slow."""

import torch

from spacy_elmo.bilm.kernels.instructions import has_instructions
from spacy_elmo.bilm.matmul_precision import Precision

ALL: tuple[Precision, ...] = ("float32", "bfloat16", "int8")
FAST = tuple(name for name in ALL if has_instructions(name, torch.device("cpu")) is not False)
TRAINED = tuple(name for name in FAST if name != "int8")
"""The number types in which training is measured too."""
