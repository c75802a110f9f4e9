"""AllenNLP's ELMo modules, to measure `spacy_elmo.bilm` against: their code as PyPI has it, run by this torch.

    pip install --no-deps --target FOLDER allennlp==2.10.1

The package itself no longer installs beside a current torch, but its biLM needs nothing of what is missing: only
`allennlp.modules` and `allennlp.nn` are imported, and what they import for other purposes is replaced by stubs.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import torch
from torch import Tensor, nn

from spacy_elmo.bilm.char_ids import BOS, EOS, char_ids
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.weights import Weights
from spacy_elmo.convert.bilm_export import export


class AllenNLP:
    """A character biLM in AllenNLP's modules, with the parameters of one of ours, which it reads from the files that
    we export. Sentences are B lists of words, of which none is empty.

    Args:
        folder: where pip has put the package.
    """

    def __init__(self, bilm: BiLM, folder: Path, *, trained: bool = False) -> None:
        modules = _import(folder)
        self.size = bilm.config.max_characters
        with TemporaryDirectory() as files:
            export(Weights.of(bilm), files)
            self.net: Any = modules._ElmoBiLm(
                f"{files}/options.json", f"{files}/weights.hdf5", requires_grad=trained
            )
        # Its mappers are stubs: the boundaries' characters are ours, which are the same.
        encoder = self.net._token_embedder
        for name, word in (("beginning", BOS), ("end", EOS)):
            row = torch.from_numpy(char_ids([word], self.size).astype(np.int64))[0] + 1
            setattr(encoder, f"_{name}_of_sentence_characters", row)

    def layers(self, sentences: Sequence[Sequence[str]]) -> list[Tensor]:
        """(L+1, n, 2P) for each sentence of n words."""
        stacked = torch.stack(self._run(sentences))
        return [stacked[:, b, 1 : len(words) + 1] for b, words in enumerate(sentences)]

    def predictions(self, sentences: Sequence[Sequence[str]]) -> tuple[Tensor, Tensor]:
        """As of `Textbook.predictions`."""
        forward, backward = self._run(sentences)[-1].chunk(2, 2)
        lengths = [len(words) + 2 for words in sentences]
        return (
            torch.cat([forward[b, : n - 1] for b, n in enumerate(lengths)]),
            torch.cat([backward[b, 1:n] for b, n in enumerate(lengths)]),
        )

    def parameters(self) -> list[nn.Parameter]:
        return list(self.net.parameters())

    def _run(self, sentences: Sequence[Sequence[str]]) -> list[Tensor]:
        ids = np.zeros((len(sentences), max(map(len, sentences)), self.size), dtype=np.int64)
        for b, words in enumerate(sentences):
            ids[b, : len(words)] = char_ids(words, self.size) + 1  # 0 is for padding
        self.net._elmo_lstm.reset_states()  # or the next batch would go on from this one
        return list(self.net(torch.from_numpy(ids))["activations"])


def _import(folder: Path) -> ModuleType:
    root = folder / "allennlp"
    if not root.is_dir():
        raise SystemExit(
            f"{folder} holds no allennlp: pip install --no-deps --target {folder} allennlp==2.10.1"
        )
    for name in ("allennlp", "allennlp.modules", "allennlp.nn"):
        package = ModuleType(name)
        package.__path__ = [str(root.joinpath(*name.split(".")[1:]))]
        sys.modules[name] = package
    for name in (
        "common", "common.checks", "common.file_utils", "common.util", "data", "data.instance", "data.vocabulary",
        "data.tokenizers.token_class", "data.batch", "data.fields", "data.token_indexers.elmo_indexer",
        "nn.initializers",
    ):  # fmt: skip
        sys.modules[f"allennlp.{name}"] = MagicMock()
    sys.modules["allennlp.common"].FromParams = type("FromParams", (), {})  # type: ignore[attr-defined]
    sys.modules["allennlp.common.checks"].ConfigurationError = ValueError  # type: ignore[attr-defined]
    sys.modules["allennlp.common.file_utils"].cached_path = str  # type: ignore[attr-defined]
    return importlib.import_module("allennlp.modules.elmo")
