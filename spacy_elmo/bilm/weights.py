"""Our weights file: safetensors, with the configuration in its header, and one strict check on reading."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from .config import BiLMConfig
from .head import Head
from .model import BiLM

FORMAT = "spacy-elmo 1"
_VOCABULARY, _HEAD = "vocabulary", "head."
_READABLE = (torch.float16, torch.bfloat16, torch.float32)


@dataclass
class Weights:
    """A biLM at rest.

    The tensors carry the names of `BiLM.state_dict()`; a head's, if there is one, stand beside them as `head.*`.
    """

    config: BiLMConfig
    tensors: dict[str, Tensor]
    vocabulary: list[str] = field(default_factory=list)
    """Words of a word-input model's table and of the head's rows, in their order; empty if there are neither."""
    card: dict[str, Any] = field(default_factory=dict)
    """What a user should know: name, language, tokenizer, casing, licence, corpus, perplexity. JSON types."""

    @classmethod
    def of(
        cls,
        bilm: BiLM,
        head: Head | None = None,
        *,
        vocabulary: Sequence[str] = (),
        card: Mapping[str, Any] | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> Weights:
        """A copy of the weights of a live network, in `dtype`, on the CPU."""
        tensors = dict(bilm.state_dict())
        if head is not None:
            tensors |= {_HEAD + name: tensor for name, tensor in head.state_dict().items()}
        tensors = {
            name: t.detach().to("cpu", dtype, copy=True).contiguous() for name, t in tensors.items()
        }
        return cls(bilm.config, tensors, list(vocabulary), dict(card or {}))

    def bilm(self) -> BiLM:
        """A network with these weights, in float32, evaluation mode, on the CPU."""
        with torch.device("meta"):
            bilm = BiLM(self.config)
        # The shell above costs no memory; assigning puts the tensors themselves in its places.
        bilm.load_state_dict(
            {
                n: t.to(torch.float32, copy=True)
                for n, t in self.tensors.items()
                if not n.startswith(_HEAD)
            },
            assign=True,
        )
        bilm.set_vocabulary(self.vocabulary)
        return bilm.eval()

    def head(self) -> Head | None:
        """The next-word head, in float32; None if the file has none."""
        tensors = {
            n.removeprefix(_HEAD): t.float() for n, t in self.tensors.items() if n.startswith(_HEAD)
        }
        if not tensors:
            return None
        head = Head(len(self.vocabulary), self.config.projection)
        head.load_state_dict(tensors)
        return head

    def without_head(self) -> Weights:
        """The same biLM alone: what a component needs. A word-input model keeps its vocabulary."""
        tensors = {n: t for n, t in self.tensors.items() if not n.startswith(_HEAD)}
        return dataclasses.replace(
            self, tensors=tensors, vocabulary=self.vocabulary if self.config.words else []
        )

    def to_bytes(self) -> bytes:
        """The content of a weights file.

        Raises:
            ValueError: a word of the vocabulary contains a newline.
        """
        tensors = dict(self.tensors)
        if self.vocabulary:
            if broken := [word for word in self.vocabulary if "\n" in word]:
                raise ValueError(f"Words with a newline cannot be in a vocabulary: {broken[:10]}")
            text = "\n".join(self.vocabulary).encode("utf8", "surrogatepass")
            tensors[_VOCABULARY] = torch.frombuffer(bytearray(text), dtype=torch.uint8)
        header = {
            "format": FORMAT,
            "config": json.dumps(self.config.to_dict()),
            "card": json.dumps(self.card, ensure_ascii=False),
        }
        return safetensors.torch.save(tensors, header)

    def write(self, path: str | Path) -> None:
        """Write the file in one move: a reader sees the whole of it or nothing of it, also after a crash.

        Raises:
            OSError: the disk is full or not writable; a file that stood there before is untouched.
        """
        path = Path(path)
        partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
        try:
            with partial.open("wb") as file:
                file.write(self.to_bytes())
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)

    @classmethod
    def read(cls, path: str | Path) -> Weights:
        """Read and check a weights file.

        Raises:
            OSError: there is no such file, or it cannot be read.
            ValueError: it is not a weights file, is truncated, or its tensors do not fit its header
                (names each tensor that is missing, unexpected, or of wrong shape or type).
        """
        path = Path(path)
        if path.is_dir():
            raise IsADirectoryError(
                f"{path} is a directory; a weights file is one .safetensors file"
            )
        with path.open("rb"):
            pass  # a plain OSError for a missing or unreadable file, before safetensors words it its own way
        try:
            with safetensors.safe_open(path, "pt") as file:
                header = file.metadata() or {}
                return cls._checked(
                    header, {name: file.get_tensor(name) for name in file.keys()}, str(path)
                )
        except safetensors.SafetensorError as error:
            raise ValueError(_unreadable(str(path), error)) from error

    @classmethod
    def from_bytes(cls, data: bytes) -> Weights:
        """Read and check the content of a weights file.

        Raises:
            ValueError: as of `read`.
        """
        try:
            tensors = safetensors.torch.load(data)
        except safetensors.SafetensorError as error:
            raise ValueError(_unreadable("weights", error)) from error
        size = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + size]).get("__metadata__", {})
        return cls._checked(header, tensors, "weights")

    @classmethod
    def _checked(
        cls, header: Mapping[str, str], tensors: dict[str, Tensor], source: str
    ) -> Weights:
        if header.get("format") != FORMAT:
            raise ValueError(
                f"{source}: format {header.get('format')!r} in the header, expected {FORMAT!r}. Files of other"
                " programs are converted by `python -m spacy elmo convert`."
            )
        try:
            config = BiLMConfig.from_dict(json.loads(header["config"]))
            card = dict(json.loads(header["card"]))
            vocabulary = _as_words(tensors.pop(_VOCABULARY, None))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{source}: damaged header or vocabulary: {error}") from error
        weights = cls(config, tensors, vocabulary, card)
        if problems := weights._problems():
            raise ValueError(
                f"{source}: the tensors do not fit the header:\n  " + "\n  ".join(problems)
            )
        return weights

    def _problems(self) -> list[str]:
        # Before the network is laid out: the number in a damaged header may be a billion.
        if self.config.layers + self.config.highways > len(self.tensors):
            return [
                f"layers = {self.config.layers}, highways = {self.config.highways}:"
                f" too many for {len(self.tensors)} tensors"
            ]
        try:
            expected = self._expected_shapes()
        except RuntimeError as error:
            return [str(error)]
        problems = [f"{name}: missing" for name in expected.keys() - self.tensors.keys()]
        problems += [f"{name}: unexpected" for name in self.tensors.keys() - expected.keys()]
        for name in expected.keys() & self.tensors.keys():
            tensor = self.tensors[name]
            if tensor.shape != expected[name]:
                problems.append(
                    f"{name}: shape {list(tensor.shape)}, expected {list(expected[name])}"
                )
            elif tensor.dtype not in _READABLE:
                problems.append(f"{name}: type {tensor.dtype}, expected a float of 16 or 32 bits")
            elif not tensor.isfinite().all():
                problems.append(f"{name}: holds values that are not finite")
        if self.config.words and len(self.vocabulary) != self.config.words:
            problems.append(
                f"vocabulary: {len(self.vocabulary)} words, expected {self.config.words}"
            )
        return sorted(problems)

    def _expected_shapes(self) -> dict[str, torch.Size]:
        with torch.device("meta"):
            shapes = {name: t.shape for name, t in BiLM(self.config).state_dict().items()}
            if any(name.startswith(_HEAD) for name in self.tensors):
                head = Head(len(self.vocabulary), self.config.projection)
                shapes |= {_HEAD + name: t.shape for name, t in head.state_dict().items()}
        return shapes


def _as_words(text: Tensor | None) -> list[str]:
    if text is None:
        return []
    if text.dtype != torch.uint8:
        raise ValueError(f"{_VOCABULARY}: type {text.dtype}, expected torch.uint8")
    return text.numpy().tobytes().decode("utf8", "surrogatepass").split("\n")


def _unreadable(source: str, error: Exception) -> str:
    return f"{source}: not a readable weights file, or truncated ({error})"
