"""Functions that load the pipeline for a command, and choose the CPU or a GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wasabi import msg

from .terminal import printable

if TYPE_CHECKING:
    from spacy.language import Language


def use_gpu(gpu_id: int) -> None:
    """Make spaCy use the GPU with this number, or the CPU if `gpu_id` is -1.

    Raises:
        ValueError: the GPU cannot be used.
    """
    if gpu_id >= 0:
        from spacy import require_gpu

        require_gpu(gpu_id)


def load_pipeline(source: str, *, lang: str | None, tokenized: bool) -> Language:
    """Call `corpora.pipelines.load_pipeline`, print the warnings, and return the pipeline."""
    from ..corpora import pipelines

    nlp, warnings = pipelines.load_pipeline(source, lang=lang, tokenized=tokenized)
    for warning in warnings:
        msg.warn(printable(warning))
    return nlp
