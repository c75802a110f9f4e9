"""Setup of a command: choice of the CPU or a GPU, and loading of the pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wasabi import msg

from .terminal import printable

if TYPE_CHECKING:
    from spacy.language import Language


def use_gpu(gpu_id: int) -> None:
    """Make spaCy use the GPU with the number `gpu_id`. If `gpu_id` is -1, spaCy uses the CPU.

    Raises:
        ValueError: the GPU cannot be used.
    """
    if gpu_id >= 0:
        from spacy import require_gpu

        require_gpu(gpu_id)


def load_pipeline(source: str, *, lang: str | None, tokenized: bool) -> Language:
    """Load a pipeline, or create a blank pipeline with the weights of a biLM (see
    `corpora.pipelines.load_pipeline`). Print the warnings."""
    from ..lab.corpora import pipelines

    nlp, warnings = pipelines.load_pipeline(source, lang=lang, tokenized=tokenized)
    for warning in warnings:
        msg.warn(printable(warning))
    return nlp
