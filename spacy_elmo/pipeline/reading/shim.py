"""The biLM inside a thinc model: loading, training, averaging, copying and saving its parameters."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch
from thinc.api import Optimizer, get_torch_default_device, torch2xp, xp2torch
from thinc.shims import Shim
from torch import Tensor

from ...bilm.config import BiLMConfig
from ...bilm.kernels.prepacked import check_precision
from ...bilm.matmul_precision import Precision
from ...bilm.model import BiLM
from ...bilm.start_state import StartState
from ...bilm.weights import Weights
from ..bundled import find_weights
from ..options import Start

TRAINABLE = ("all", "lstm", "top")

# One lock for all, because a lock as an attribute cannot be copied.
_LOADING = threading.RLock()


# Parameters that are made inside could never be trained.
_outside_inference_mode = torch.inference_mode(False)


class BiLMShim(Shim):
    """A biLM that comes into being at its first use.

    thinc's own `PyTorchShim` keeps its id when copied, so that a copy and its original share the optimizer's
    moments; looks for averages under keys that the optimizer does not write; and switches the module to
    training mode and back under the feet of other threads. This one does none of that: the module is in evaluation mode
    for good, since no layer of a biLM behaves otherwise in training.

    Args:
        shape: the numbers of `BiLMConfig` that the config states; the file must agree with them.
    """

    def __init__(self, shape: Mapping[str, Any] | None = None) -> None:
        super().__init__(None)
        self.shape = dict(shape or {})
        self.weights: str | None = None
        """A bundled name or a path; null: random, and only when asked (`initialize`)."""
        self.lang: str | None = None
        """The language of the pipeline."""
        self.start: Start = "zero"
        """What every sequence starts from: zeros, or the state that the weights file keeps for it."""
        self.precision: Precision = "float32"
        """Of the LSTM's products in prediction."""
        self.version = object()
        """Another one whenever the values of the parameters are others."""
        self._ready: tuple[object, BiLM] | None = None
        self._trainable: str | None = None
        self._unfreeze_at = self._steps = 0
        self._device: torch.device | None = None
        self._vocabulary: list[str] = []
        self._card: dict[str, Any] = {}
        self._start_state: StartState | None = None

    @property
    def bilm(self) -> BiLM:
        """The network, loaded if need be; its first use may come from several threads at once.

        Raises:
            OSError, ValueError: the weights cannot be had (see `initialize`), or none were ever asked for.
        """
        if self._model is None:
            with _LOADING:
                if self._model is None:
                    self._load()
        return self._model

    @property
    def config(self) -> BiLMConfig:
        """The shape of the network, which is loaded if need be."""
        return self.bilm.config

    @property
    def trainable(self) -> str | None:
        """What the present step trains: one of `TRAINABLE`; null: nothing."""
        return self._trainable if self._steps >= self._unfreeze_at else None

    @property
    def card(self) -> dict[str, Any]:
        """What the weights file says of itself."""
        self.bilm  # noqa: B018 - loads
        return self._card

    def checksum(self) -> str:
        """Of all that the layers of a sentence follow from: shape, parameters, precision, vocabulary, alphabet, and the
        state that it starts from if that is not zero. 32 hexadecimal digits."""
        digest = hashlib.blake2b(digest_size=16)
        stated = [self.config.to_dict(), self._vocabulary, self.precision]
        digest.update(json.dumps(stated).encode())
        digest.update(self.bilm.encoder.alphabet.encode("utf8", "surrogatepass"))
        for name, tensor in self.bilm.state_dict().items():
            digest.update(name.encode())
            digest.update(tensor.cpu().numpy().tobytes())
        if state := self.first_state(1):
            for tensor in state:
                digest.update(tensor.cpu().numpy().tobytes())
        return digest.hexdigest()

    def first_state(self, sequences: int) -> tuple[Tensor, Tensor] | None:
        """What the network starts from, as `BiLM.read` takes it for so many sequences; None: zeros."""
        if self.start == "zero":
            return None
        bilm = self.bilm
        assert self._start_state is not None, "checked when the weights were loaded"
        return self._start_state.for_batch(sequences, bilm.device)

    @_outside_inference_mode
    def initialize(self) -> None:
        """Read the weights file (again), or draw random weights where there is none, and count the steps anew.

        Raises:
            OSError: there is no such file, or it cannot be read.
            ValueError: it is no weights file, its shape is not that of the config, or it keeps no start state for
                `start = "warm"`.
        """
        self._steps = 0
        with _LOADING:
            if self.weights is None:
                self._adopt(self._checked(self._random(), "a random biLM"))
            else:
                self._load()

    def set_trainable(self, trainable: str | None, unfreeze_at: int = 0) -> None:
        """Choose what is trained. Parameters that are not get no gradient and are left alone by the optimizer.

        Args:
            trainable: one of `TRAINABLE`; null: nothing.
            unfreeze_at: the first step that trains it. Steps are counted from 0 and from `initialize`, or from
                the loading of a saved pipeline, as spaCy's schedules count them: no file keeps the number.

        Raises:
            ValueError: for an unknown choice, or a step that never comes.
        """
        if trainable is not None and trainable not in TRAINABLE:
            raise ValueError(f"trainable = {trainable!r}: expected one of {', '.join(TRAINABLE)}")
        if unfreeze_at < 0:
            raise ValueError(f"unfreeze_at = {unfreeze_at}: it must be a step, 0 or more")
        self._trainable, self._unfreeze_at = trainable, unfreeze_at
        if self._model is not None:
            _require_gradients(self._model, self.trainable)

    def begin_update(
        self, read: Callable[[BiLM], Tensor]
    ) -> tuple[Tensor, Callable[[Tensor], None]]:
        """Run the network with a graph. The callback adds to the gradients of the parameters.

        Args:
            read: what to do with the network.
        """
        with torch.enable_grad():
            output = read(self.bilm)

        def backprop(gradient: Tensor) -> None:
            # Without words, or when the graph ends above all that is trained, there is nothing to walk.
            if output.requires_grad:
                output.backward(gradient)

        return output.detach(), backprop

    def predict(self, read: Callable[[BiLM], Tensor]) -> Tensor:
        """Run the network without a graph, its matrices made ready once for these values of the parameters."""
        # What a caller has switched on must neither round what is remembered nor leave it unusable outside.
        with torch.inference_mode(False), torch.no_grad():
            bilm = self._ready_bilm()
            with torch.autocast(bilm.device.type, enabled=False):
                return read(bilm)

    def _ready_bilm(self) -> BiLM:
        self.bilm  # noqa: B018 - loads
        # The version first: whoever changes the parameters meanwhile sets it after them.
        version, bilm, ready = self.version, self.bilm, self._ready
        if ready is None or ready[0] is not version:
            ready = self._ready = version, bilm.prepare_for_inference(self.precision)
        return ready[1]

    def forget(self) -> None:
        """Forget the words read before, on which may depend how the vector of a word is rounded in its last digit."""
        if self._ready is not None:
            self._ready[1].clear_cache()

    def finish_update(self, optimizer: Optimizer) -> None:
        """Let the optimizer take its step with the gradients gathered."""
        self._steps += 1
        if self._model is None:
            return
        for name, param in self._model.named_parameters():
            if param.grad is not None and param.requires_grad:
                # Adam writes into these arrays, and on the CPU they are the parameter's own memory.
                data: Any = torch2xp(param.data)
                gradient: Any = torch2xp(param.grad.contiguous())
                value, _ = optimizer((self.id, name), data, gradient)
                param.data.copy_(xp2torch(value, device=param.device))
                self.version, self._ready = object(), None
            param.grad = None
        if self._steps == self._unfreeze_at:
            _require_gradients(self._model, self.trainable)

    @contextlib.contextmanager
    def use_params(self, params: Mapping[Any, Any]) -> Iterator[None]:
        """Stand in other values, such as the optimizer's averages, under the keys that it uses: (id, name)."""
        own = self._model.named_parameters() if self._model is not None else ()
        changed = [
            (param, params[self.id, name]) for name, param in own if (self.id, name) in params
        ]
        kept, version = [param.data for param, _ in changed], self.version
        try:
            for param, value in changed:
                param.data = xp2torch(value, device=param.device).clone()
                self.version, self._ready = object(), None
            yield
        finally:
            for (param, _), data in zip(changed, kept, strict=True):
                param.data = data
            self.version, self._ready = version, None if changed else self._ready

    def to_device(self, device_type: str, device_id: int) -> None:
        """Follow the ops of the thinc model."""
        self._device = (
            torch.device("cuda", device_id) if device_type == "gpu" else torch.device("cpu")
        )
        if self._model is not None:
            self._model.to(self._device)
            self._ready = None

    def to_bytes(self) -> bytes:
        """A whole weights file: bytes suffice to rebuild the network without any other file."""
        bilm = self.bilm
        start = self._start_state
        kept = [] if start is None else [start.h, start.c]
        weights = Weights.from_bilm(
            bilm,
            vocabulary=self._vocabulary,
            card=self._card,
            start_state=start,
            dtype=_narrowest_exact_dtype([*bilm.state_dict().values(), *kept]),
        )
        return weights.to_bytes()

    @_outside_inference_mode
    def from_bytes(self, data: bytes) -> BiLMShim:
        """The inverse of `to_bytes`.

        Raises:
            ValueError: damaged bytes, a shape that is not that of the config, or no start state for `start = "warm"`.
        """
        with _LOADING:
            self._adopt(self._checked(Weights.from_bytes(data), "the saved pipeline"))
        return self

    def copy(self) -> BiLMShim:
        """An independent copy under an id of its own, so that the optimizer keeps its moments apart."""
        return copy.deepcopy(self)

    def __getstate__(self) -> dict[str, Any]:
        if self.weights is not None:
            self.bilm  # noqa: B018 - what is copied or pickled holds its weights, not the hope of a file
        return {n: value for n, value in self.__dict__.items() if n not in ("id", "_ready")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__init__(None)
        self.__dict__.update(state)
        self._ready = None

    def __copy__(self) -> BiLMShim:
        return self.copy()

    @_outside_inference_mode
    def _load(self) -> None:
        if self.weights is None:
            raise ValueError(
                "This biLM has no weights: the config says weights = null, which means random ones, and"
                " they are only drawn by nlp.initialize(). Call it, or name a weights file"
            )
        weights = Weights.load(find_weights(self.weights)).without_head()
        self._adopt(self._checked(weights, self.weights))
        language = weights.card.get("language")
        if language and self.lang and "xx" not in (language, self.lang) and language != self.lang:
            warnings.warn(
                f"The biLM of weights={self.weights!r} was trained on language {language!r}, and this pipeline's"
                f" language is {self.lang!r}. Name a biLM of that language: weights=PATH",
                stacklevel=2,
            )

    def _checked(self, weights: Weights, source: str) -> Weights:
        found = vars(weights.config)
        stated = vars(BiLMConfig(**{**found, **self.shape}))
        if wrong := [
            f"{k} = {stated[k]} (it has {found[k]})" for k in found if stated[k] != found[k]
        ]:
            raise ValueError(
                f"The config of the biLM does not fit {source}: it says {', '.join(wrong)}. Leave these"
                " at null to take what is there"
            )
        if self.start == "warm" and weights.start_state is None:
            raise ValueError(
                f'start = "warm", but {source} has no start state. `python -m spacy elmo convert FORMAT IN OUT_FILE'
                ' --warm TEXT` estimates one and keeps it in the file; start = "zero" needs none'
            )
        return weights

    def _random(self) -> Weights:
        for field, names in (("words", "vocabulary"), ("symbols", "alphabet")):
            if self.shape.get(field):
                raise ValueError(
                    f"{field} = {self.shape[field]} with weights = null: such a biLM needs a file, because its"
                    f" {names} is in there"
                )
        bilm = BiLM(BiLMConfig(**self.shape))
        return Weights.from_bilm(bilm)

    def _adopt(self, weights: Weights) -> None:
        device = self._device or get_torch_default_device()
        check_precision(self.precision, device)
        bilm = weights.build_bilm().to(device)
        _require_gradients(bilm, self.trainable)
        self._vocabulary, self._card = weights.vocabulary, weights.card
        self._start_state = weights.start_state
        # After all that other threads look at when they see it.
        self._model = bilm
        self.version = object()


def _require_gradients(bilm: BiLM, trainable: str | None) -> None:
    last = f"lstm.{bilm.config.layers - 1}."
    start = {"all": "", "lstm": "lstm.", "top": last}.get(trainable or "")
    for name, param in bilm.named_parameters():
        param.requires_grad_(start is not None and name.startswith(start))


def _narrowest_exact_dtype(tensors: Iterable[Tensor]) -> torch.dtype:
    """float16 if every weight survives it, as those of an untrained float16 file do; else float32."""
    exact = all(torch.equal(t, t.half().to(t.dtype)) for t in tensors)
    return torch.float16 if exact else torch.float32
