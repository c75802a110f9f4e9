"""AllenNLP's ELMo modules, to measure and to test `spacy_elmo` against: their code as PyPI has it, run by this torch.

    pip install --no-deps --target FOLDER allennlp==2.10.1

The package itself no longer installs beside a current torch, but its biLM needs nothing of what is missing: only
`allennlp.modules`, `allennlp.nn` and its indexer of characters are imported, and what they import for other purposes is
replaced by stubs.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import torch
from torch import Tensor, nn

from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.weights import Weights
from spacy_elmo.bilm.words.char_ids import char_ids
from spacy_elmo.convert.bilm_tf.export import export

_CHARACTERS = 50  # as their indexer has it
_PACKAGES = ("modules", "nn", "data", "data.token_indexers")
_STUBS = (
    "common", "common.checks", "common.file_utils", "common.util", "data.instance", "data.vocabulary",
    "data.tokenizers", "data.tokenizers.token_class", "data.batch", "data.fields",
    "data.token_indexers.token_indexer", "nn.initializers",
)  # fmt: skip


class AllenNLP:
    """A character biLM in AllenNLP's modules. Sentences are B lists of words, of which none is empty.

    Args:
        net: an `_ElmoBiLm`.
    """

    def __init__(self, net: Any) -> None:
        self.net = net

    @classmethod
    def of(cls, bilm: BiLM, folder: Path, *, trained: bool = False) -> AllenNLP:
        """With the parameters of one of ours, which it reads from the files that we export.

        Args:
            folder: where pip has put the package.
        """
        with TemporaryDirectory() as files:
            export(Weights.of(bilm), files)
            net = elmo_module(folder)._ElmoBiLm(
                f"{files}/options.json", f"{files}/weights.hdf5", requires_grad=trained
            )
        return cls(net)

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
        ids = np.zeros((len(sentences), max(map(len, sentences)), _CHARACTERS), dtype=np.int64)
        for b, words in enumerate(sentences):
            ids[b, : len(words)] = char_ids(words, _CHARACTERS) + 1  # 0 is for padding
        self.net._elmo_lstm.reset_states()  # or the next batch would go on from this one
        return list(self.net(torch.from_numpy(ids))["activations"])


@functools.cache
def elmo_module(folder: Path) -> ModuleType:
    """Their module `allennlp.modules.elmo`, which has `Elmo`, `_ElmoBiLm` and `ELMoCharacterMapper`.

    Args:
        folder: where pip has put the package.
    """
    root = folder / "allennlp"
    if not root.is_dir():
        raise SystemExit(
            f"{folder} holds no allennlp: pip install --no-deps --target {folder} allennlp==2.10.1"
        )
    stubs: dict[str, Any] = {name: MagicMock() for name in _STUBS}
    stubs["common"].FromParams = type("FromParams", (), {})
    stubs["common.checks"].ConfigurationError = ValueError
    stubs["common.file_utils"].cached_path = str
    stubs["data.token_indexers.token_indexer"].TokenIndexer = _TokenIndexer
    for name in _PACKAGES:
        stubs[name] = ModuleType(name)
        stubs[name].__path__ = [str(root.joinpath(*name.split(".")))]
    sys.modules["allennlp"] = ModuleType("allennlp")
    sys.modules["allennlp"].__path__ = [str(root)]
    sys.modules |= {f"allennlp.{name}": stub for name, stub in stubs.items()}
    return importlib.import_module("allennlp.modules.elmo")


class _TokenIndexer:
    @staticmethod
    def register(name: str) -> Callable[[type], type]:
        return lambda cls: cls
