"""Our weights file: safetensors, with the configuration in its header, and one strict check on reading."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from ..files import atomic_write
from .config import BiLMConfig
from .head import Head
from .meta import shells
from .model import BiLM
from .start_state import StartState
from .words.alphabet import N_MARKS

FORMAT = "spacy-elmo 1"
_VOCABULARY, _ALPHABET, _HEAD = "vocabulary", "alphabet", "head."
_START_H, _START_C = "start.h", "start.c"
_READABLE = (torch.float16, torch.bfloat16, torch.float32)


@dataclass
class Weights:
    """A biLM at rest.

    The tensors carry the names of `BiLM.state_dict()`; a head's, if there is one, stand beside them as `head.*`.
    """

    config: BiLMConfig
    tensors: dict[str, Tensor]
    vocabulary: list[str] = field(default_factory=list)
    """Words of the word table's rows and of the head's, in their order; empty if there are neither."""
    card: dict[str, Any] = field(default_factory=dict)
    """What a user should know: name, language, tokenizer, casing, licence, corpus, perplexity. JSON types."""
    alphabet: str = ""
    """Characters of a table of code points, those of the rows after the marks; empty where characters are bytes."""
    start: StartState | None = None
    """What sentences start from where `start = "warm"`; None: that cannot be asked for."""

    @classmethod
    def of(
        cls,
        bilm: BiLM,
        head: Head | None = None,
        *,
        vocabulary: Sequence[str] = (),
        card: Mapping[str, Any] | None = None,
        start: StartState | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> Weights:
        """A copy of the weights of a live network, in `dtype`, on the CPU."""
        tensors = dict(bilm.state_dict())
        if head is not None:
            tensors |= {_HEAD + name: tensor for name, tensor in head.state_dict().items()}
        tensors = {
            name: t.detach().to("cpu", dtype, copy=True).contiguous() for name, t in tensors.items()
        }
        alphabet = bilm.encoder.alphabet
        start = None if start is None else start.to(dtype)
        return cls(bilm.config, tensors, list(vocabulary), dict(card or {}), alphabet, start)

    def bilm(self) -> BiLM:
        """A network with these weights, in float32, evaluation mode, on the CPU.

        Tensors that are float32 become its parameters themselves, because a copy would double the memory of loading:
        whoever trains it trains these.
        """
        with shells():
            bilm = BiLM(self.config)
        tensors = {n: t.float() for n, t in self.tensors.items() if not n.startswith(_HEAD)}
        bilm.load_state_dict(tensors, assign=True)
        bilm.set_names(self.vocabulary, self.alphabet)
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
        """The same biLM alone: what a component needs. A model with a word table keeps its vocabulary."""
        tensors = {n: t for n, t in self.tensors.items() if not n.startswith(_HEAD)}
        return dataclasses.replace(
            self, tensors=tensors, vocabulary=self.vocabulary if self.config.words else []
        )

    def to_bytes(self) -> bytes:
        """The content of a weights file.

        Raises:
            ValueError: a word of the vocabulary contains a newline.
        """
        tensors = self._with_start()
        if self.vocabulary:
            if broken := [word for word in self.vocabulary if "\n" in word]:
                raise ValueError(f"Words with a newline cannot be in a vocabulary: {broken[:10]}")
            tensors[_VOCABULARY] = _as_bytes("\n".join(self.vocabulary))
        if self.alphabet:
            tensors[_ALPHABET] = _as_bytes(self.alphabet)
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
        atomic_write(path, self.to_bytes())

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
        try:
            # Opened here first: a plain OSError for a missing or unreadable file, which safetensors words its own way.
            with path.open("rb") as file, safetensors.safe_open(path, "pt") as layout:
                header, tensors = layout.metadata() or {}, _read_tensors(file, layout)
        except (safetensors.SafetensorError, EOFError) as error:
            raise ValueError(_unreadable(str(path), error)) from error
        return cls._checked(header, tensors, str(path))

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
        for name in tensors:
            tensors[name] = tensors[name].clone()  # as aligned as of a file, and one at a time
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
            words = _as_text(_VOCABULARY, tensors.pop(_VOCABULARY, None))
            alphabet = _as_text(_ALPHABET, tensors.pop(_ALPHABET, None))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"{source}: damaged header, vocabulary or alphabet: {error}"
            ) from error
        vocabulary = [] if words is None else words.split("\n")
        start = None
        if {_START_H, _START_C} <= tensors.keys():
            start = StartState(tensors.pop(_START_H), tensors.pop(_START_C))
        weights = cls(config, tensors, vocabulary, card, alphabet or "", start)
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
        tensors = self._with_start()
        problems = [f"{name}: missing" for name in expected.keys() - tensors.keys()]
        problems += [f"{name}: unexpected" for name in tensors.keys() - expected.keys()]
        for name in expected.keys() & tensors.keys():
            tensor = tensors[name]
            if tensor.shape != expected[name]:
                problems.append(
                    f"{name}: shape {list(tensor.shape)}, expected {list(expected[name])}"
                )
            elif tensor.dtype not in _READABLE:
                problems.append(f"{name}: type {tensor.dtype}, expected a float of 16 or 32 bits")
            elif not _is_finite(tensor):
                problems.append(f"{name}: holds values that are not finite")
        if self.config.words and len(self.vocabulary) != self.config.words:
            problems.append(
                f"vocabulary: {len(self.vocabulary)} words, expected {self.config.words}"
            )
        expected_characters = max(self.config.symbols - N_MARKS, 0)
        if len(self.alphabet) != expected_characters:
            problems.append(
                f"alphabet: {len(self.alphabet)} characters, expected {expected_characters}"
            )
        return sorted(problems)

    def _with_start(self) -> dict[str, Tensor]:
        """The tensors as they stand in a file."""
        if self.start is None:
            return dict(self.tensors)
        return {**self.tensors, _START_H: self.start.h, _START_C: self.start.c}

    def _expected_shapes(self) -> dict[str, torch.Size]:
        with shells():
            shapes = {name: t.shape for name, t in BiLM(self.config).state_dict().items()}
            if any(name.startswith(_HEAD) for name in self.tensors):
                head = Head(len(self.vocabulary), self.config.projection)
                shapes |= {_HEAD + name: t.shape for name, t in head.state_dict().items()}
        if {_START_H, _START_C} & self._with_start().keys():
            layers = self.config.layers
            shapes[_START_H] = torch.Size((layers, 2, self.config.projection))
            shapes[_START_C] = torch.Size((layers, 2, self.config.dim))
        return shapes


def _read_tensors(file: BufferedReader, layout: Any) -> dict[str, Tensor]:
    """Tensors in memory of their own, which what happens to the file cannot reach.

    Those of safetensors are views of the mapped file: copying them would take its memory twice.

    Args:
        file: at its start.
        layout: what safetensors has found in it, and found sound.

    Raises:
        EOFError: the file has become shorter since.
    """
    tensors = {}
    size = int.from_bytes(file.read(8), "little")
    entries = json.loads(file.read(size))
    entries.pop("__metadata__", None)
    for name, entry in entries.items():
        tensor = torch.empty_like(layout.get_tensor(name))
        content = tensor.view(-1).view(torch.uint8).numpy().data
        file.seek(8 + size + entry["data_offsets"][0])
        if file.readinto(content) < content.nbytes:
            raise EOFError(f"{name} ends too early")
        tensors[name] = tensor
    return tensors


def _is_finite(tensor: Tensor) -> bool:
    """Whether it holds no infinity and no NaN, which is both extremes where there is one; without working memory."""
    return not tensor.numel() or all(extreme.isfinite() for extreme in tensor.aminmax())


def _as_bytes(text: str) -> Tensor:
    return torch.frombuffer(bytearray(text.encode("utf8", "surrogatepass")), dtype=torch.uint8)


def _as_text(name: str, tensor: Tensor | None) -> str | None:
    if tensor is None:
        return None
    if tensor.dtype != torch.uint8:
        raise ValueError(f"{name}: type {tensor.dtype}, expected torch.uint8")
    return tensor.numpy().tobytes().decode("utf8", "surrogatepass")


def _unreadable(source: str, error: Exception) -> str:
    return f"{source}: not a readable weights file, or truncated ({error})"
