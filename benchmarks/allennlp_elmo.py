"""AllenNLP's ELMo, as a rival and for tests. The code is that of the PyPI package, and runs with the installed torch.

    pip install --no-deps --target FOLDER allennlp==2.10.1

The package cannot be installed together with a current torch, but its biLM does not need the conflicting dependencies.
Only `allennlp.modules`, `allennlp.nn` and the character indexer are imported; stubs replace their other imports.
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
from spacy_elmo.bilm.token_encoder import char_ids
from spacy_elmo.bilm.weights import Weights
from spacy_elmo.converters.bilm_tf import export

_CHARACTERS = 50  # fixed in AllenNLP's indexer
_PACKAGES = ("modules", "nn", "data", "data.token_indexers")
_STUBS = (
    "common", "common.checks", "common.file_utils", "common.util", "data.instance", "data.vocabulary",
    "data.tokenizers", "data.tokenizers.token_class", "data.batch", "data.fields",
    "data.token_indexers.token_indexer", "nn.initializers",
)  # fmt: skip


class AllenNLP:
    """A character biLM in AllenNLP's modules. Each sentence must have at least one word.

    Args:
        net: an `_ElmoBiLm`.
    """

    def __init__(self, net: Any) -> None:
        self.net = net

    @classmethod
    def from_bilm(cls, bilm: BiLM, folder: Path, *, trained: bool = False) -> AllenNLP:
        """Create a network with the parameters of a `BiLM`, by exporting them to files that AllenNLP loads.

        Args:
            folder: the folder into which pip has installed the package.
            trained: let the parameters require gradients.
        """
        with TemporaryDirectory() as files:
            export(Weights.from_bilm(bilm), files)
            net = elmo_module(folder)._ElmoBiLm(
                f"{files}/options.json", f"{files}/weights.hdf5", requires_grad=trained
            )
        return cls(net)

    def layers(self, sentences: Sequence[Sequence[str]]) -> list[Tensor]:
        """Return for each sentence of n words its layers, (L+1, n, 2P)."""
        stacked = torch.stack(self._forward(sentences))
        return [stacked[:, b, 1 : len(words) + 1] for b, words in enumerate(sentences)]

    def contexts(self, sentences: Sequence[Sequence[str]]) -> tuple[Tensor, Tensor]:
        """Return the outputs that predict a word; see `ReferenceBiLM.contexts`."""
        forward, backward = self._forward(sentences)[-1].chunk(2, 2)
        lengths = [len(words) + 2 for words in sentences]
        return (
            torch.cat([forward[b, : n - 1] for b, n in enumerate(lengths)]),
            torch.cat([backward[b, 1:n] for b, n in enumerate(lengths)]),
        )

    def parameters(self) -> list[nn.Parameter]:
        return list(self.net.parameters())

    def _forward(self, sentences: Sequence[Sequence[str]]) -> list[Tensor]:
        ids = np.zeros((len(sentences), max(map(len, sentences)), _CHARACTERS), dtype=np.int64)
        for b, words in enumerate(sentences):
            ids[b, : len(words)] = char_ids(words, _CHARACTERS) + 1  # 0 is for padding
        self.net._elmo_lstm.reset_states()  # otherwise this batch would start with the states of the last one
        return list(self.net(torch.from_numpy(ids))["activations"])


@functools.cache
def elmo_module(folder: Path) -> ModuleType:
    """Import `allennlp.modules.elmo`, which contains `Elmo`, `_ElmoBiLm` and `ELMoCharacterMapper`.

    Args:
        folder: the folder into which pip has installed the package.
    """
    root = folder / "allennlp"
    if not root.is_dir():
        raise SystemExit(
            f"{folder} has no allennlp: run pip install --no-deps --target {folder} allennlp==2.10.1"
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
