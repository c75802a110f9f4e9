"""Data types in which the network can multiply matrices at inference."""

from typing import Literal, TypeAlias, get_args

Precision: TypeAlias = Literal["float32", "bfloat16", "float16", "int8"]
PRECISIONS: tuple[Precision, ...] = get_args(Precision)
