"""Thinc shim (wrapper of a torch network) that loads, trains, copies and saves the parameters of a biLM."""

from __future__ import annotations

import contextlib
import copy
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from thinc.api import Optimizer, PyTorchShim, get_torch_default_device, torch2xp, xp2torch
from thinc.types import ArgsKwargs
from torch import Tensor

from ...bilm.config import BiLMConfig
from ...bilm.model import BiLM, plain_inference
from ...bilm.start_state import StartState
from ...bilm.weights import Weights
from ...digest import Digest
from ...weight_names import AUTO, default_weights, find_weights
from ..factory_options import BiLMOptions, Trainable
from .parameters import (
    change_counters,
    factors_by_layer,
    layer_of,
    narrowest_exact_dtype,
    new_version,
    require_gradients,
)
from .sequences import write_layers

# Locks for all shims, because an attribute that is a lock cannot be copied.
_LOADING = threading.RLock()
_COMPARING = threading.Lock()
_RANDOM = BiLMOptions(weights=None)

# Parameters that are created in inference mode could never be trained.
_outside_inference_mode = torch.inference_mode(False)


class BiLMShim(PyTorchShim):
    """A thinc shim (wrapper of a torch network) for a biLM, which is loaded at its first use. The inputs of
    the shim are the arguments of `write_layers`, without `bilm` and `first_state`.

    This class differs from `PyTorchShim` in three points. A copy of the shim gets a new id, so the copy does
    not share the optimizer's moments with the original. `use_params` looks up averages under the keys that
    the optimizer writes. The network always stays in evaluation mode, so other threads can use the network
    during training. (No layer of a biLM behaves differently in training mode.)

    Args:
        shape: the fields of `BiLMConfig` that the pipeline's config sets. The weights must agree with them.
    """

    def __init__(self, shape: Mapping[str, Any] | None = None) -> None:
        super().__init__(None)
        self.shape = dict(shape or {})
        self.options = _RANDOM
        """Options of the biLM. Before `configure` sets them, the biLM is frozen and has random weights."""
        self._version = new_version()
        self._counters: list[tuple[int, int]] = []
        self._inference_bilm: tuple[str, BiLM] | None = None
        self._steps = 0
        self._device: torch.device | None = None
        self._vocabulary: list[str] = []
        self._card: dict[str, Any] = {}
        self._start_state: StartState | None = None

    @property
    def bilm(self) -> BiLM:
        """The network, which is loaded at its first use. Several threads can use the network at once.

        Raises:
            OSError, ValueError: the weights cannot be loaded (see `initialize`), or random weights are not
                drawn yet.
        """
        self.ensure_loaded()
        return self._model

    def ensure_loaded(self) -> None:
        """Load the network if it is not loaded yet. The property `bilm` lists the possible errors."""
        if self._model is None:
            with _LOADING:
                if self._model is None:
                    self._load()

    @property
    def config(self) -> BiLMConfig:
        """The config of the network. The network is loaded if necessary."""
        return self.bilm.config

    @property
    def trainable(self) -> Trainable | None:
        """The option `trainable` if the current training step changes the biLM; otherwise None."""
        options = self.options
        frozen = options.frozen or self._steps < options.unfreeze_at
        return None if frozen else options.trainable

    @property
    def version(self) -> str:
        """Identifier of the current parameter values. The identifier changes whenever any code changes the
        values (except through `parameter.data`). The network is loaded if necessary."""
        self.ensure_loaded()
        # Without the lock, two threads could each give the same values an identifier of their own.
        with _COMPARING:
            counters = change_counters(self._model)
            if counters != self._counters:
                self._counters, self._version = counters, new_version()
            return self._version

    def configure(self, options: BiLMOptions) -> None:
        """Set the options of the biLM.

        Parameters that are not trained get no gradient, and the optimizer skips these parameters. Training
        steps are counted from 0 after `initialize`, and also after a saved pipeline is loaded, because the
        count is not saved. spaCy's schedules count in the same way.
        """
        self.options = options
        if self._model is not None:
            require_gradients(self._model, self.trainable)

    def checksum(self) -> str:
        """Return a hash of everything that determines the layers of a sentence, as 32 hexadecimal digits.

        The hash covers the config, parameters, precision, vocabulary and alphabet of the biLM, and the
        initial LSTM state if the option `start` is "warm".
        """
        digest = Digest()
        settings = [self.config.to_dict(), self._vocabulary, self.options.precision]
        digest.update(json.dumps(settings).encode())
        digest.update(self.bilm.encoder.alphabet.encode("utf8", "surrogatepass"))
        for name, tensor in self.bilm.state_dict().items():
            digest.update(name.encode())
            digest.update(tensor.cpu().numpy().tobytes())
        if state := self.first_state(1):
            for tensor in state:
                digest.update(tensor.cpu().numpy().tobytes())
        return digest.hexdigest()

    def first_state(self, sequences: int) -> tuple[Tensor, Tensor] | None:
        """Return the initial LSTM state for this number of sequences (argument `state` of `BiLM.forward`);
        None means zeros."""
        if self.options.start == "zero":
            return None
        bilm = self.bilm
        assert self._start_state is not None, "checked when the weights were loaded"
        return self._start_state.for_batch(sequences, bilm.device)

    @_outside_inference_mode
    def initialize(self) -> None:
        """Read the weights file, even if it was read before. If the option `weights` is null, draw random
        weights instead. Set the count of training steps to 0.

        Raises:
            OSError: the weights file does not exist or cannot be read.
            ValueError: the file is not a weights file; the weights do not agree with the config; or the
                option `start` is "warm", but the file contains no initial LSTM state.
        """
        self._steps = 0
        with _LOADING:
            if self.options.weights is None:
                self._set_weights(self._checked(self._random(), "a random biLM"))
            else:
                self._load()

    def begin_update(self, inputs: ArgsKwargs) -> tuple[Tensor, Callable[[ArgsKwargs], None]]:
        """Run the network with an autograd graph. Return the layers and a function that takes the arguments
        of `torch.autograd.backward` and adds to the gradients of the parameters."""
        with torch.enable_grad():
            output = self._run(self.bilm, inputs)

        def backprop(grads: ArgsKwargs) -> None:
            # There is no graph without words, or if no trained parameter was used.
            if output.requires_grad:
                torch.autograd.backward(*grads.args, **grads.kwargs)

        return output, backprop

    def predict(self, inputs: ArgsKwargs) -> Tensor:
        """Run the network without an autograd graph. The first call after a change of the weights converts
        the weights for fast products (see `bilm_for_inference`)."""
        with plain_inference(self.bilm.device):
            return self._run(self.bilm_for_inference(), inputs)

    def _run(self, bilm: BiLM, inputs: ArgsKwargs) -> Tensor:
        return write_layers(bilm, *inputs.args, first_state=self.first_state, **inputs.kwargs)

    def bilm_for_inference(self) -> BiLM:
        """Return a copy of the network for prediction only, with weights in a format for fast products. The
        copy is kept until the weights change."""
        # Read the version first: if another thread changes the parameters meanwhile, the version differs afterwards.
        version, ready = self.version, self._inference_bilm
        if ready is None or ready[0] != version:
            bilm = self._model.prepare_for_inference(self.options.precision)
            ready = self._inference_bilm = version, bilm
        return ready[1]

    def clear_cache(self) -> None:
        """Empty the cache of the token encoder's outputs for recent words. The words in this cache can affect
        the last digit of a vector."""
        if self._inference_bilm is not None:
            self._inference_bilm[1].clear_cache()

    def finish_update(self, optimizer: Optimizer) -> None:
        """Let the optimizer update the trained parameters with their accumulated gradients."""
        self._steps += 1
        if self._model is None:
            return
        factors = factors_by_layer(self.options.learn_rate_factor, self.config)
        for name, param in self._model.named_parameters():
            if param.grad is not None and param.requires_grad:
                # Adam writes into these arrays. On the CPU they share the parameter's memory.
                data: Any = torch2xp(param.data)
                gradient: Any = torch2xp(param.grad.contiguous())
                factor = factors[layer_of(name)]
                scale = {} if factor == 1 else {"lr_scale": factor}  # not every optimizer takes it
                value, _ = optimizer((self.id, name), data, gradient, **scale)
                param.data.copy_(xp2torch(value, device=param.device))
                self._version, self._inference_bilm = new_version(), None
            param.grad = None
        if self._steps == self.options.unfreeze_at:
            require_gradients(self._model, self.trainable)

    @contextlib.contextmanager
    def use_params(self, params: Mapping[Any, Any]) -> Iterator[None]:
        """Within a `with` block, set parameters to the values in `params`, such as averages over training
        steps. A key of `params` is the pair (id of this shim, name of the parameter), as in the optimizer."""
        named = self._model.named_parameters() if self._model is not None else ()
        changed = [
            (param, params[self.id, name]) for name, param in named if (self.id, name) in params
        ]
        if not changed:
            yield
            return
        kept = [param.data for param, _ in changed]
        try:
            for param, value in changed:
                param.data = xp2torch(value, device=param.device).clone()
            self._version, self._inference_bilm = new_version(), None
            yield
        finally:
            for (param, _), data in zip(changed, kept, strict=True):
                param.data = data
            # Not the old version: another thread may have kept values of the averages under it.
            self._version, self._inference_bilm = new_version(), None

    def to_device(self, device_type: str, device_id: int) -> None:
        """Move the network to the device of the thinc model's ops."""
        self._device = (
            torch.device("cuda", device_id) if device_type == "gpu" else torch.device("cpu")
        )
        if self._model is not None:
            self._model.to(self._device)
            self._version, self._inference_bilm = new_version(), None

    def to_bytes(self) -> bytes:
        """Return the bytes of a complete weights file. Loading these bytes needs no other file."""
        bilm = self.bilm
        start = self._start_state
        kept = [] if start is None else [start.h, start.c]
        weights = Weights.from_bilm(
            bilm,
            vocabulary=self._vocabulary,
            card=self._card,
            start_state=start,
            dtype=narrowest_exact_dtype([*bilm.state_dict().values(), *kept]),
        )
        return weights.to_bytes()

    @_outside_inference_mode
    def from_bytes(self, data: bytes) -> BiLMShim:
        """Load the weights from the bytes that `to_bytes` has returned.

        Raises:
            ValueError: the bytes are damaged; the weights do not agree with the config; or the option `start`
                is "warm", but the bytes contain no initial LSTM state.
        """
        self._steps = 0
        with _LOADING:
            self._set_weights(self._checked(Weights.from_bytes(data), "the saved pipeline"))
        return self

    def __getstate__(self) -> dict[str, Any]:
        if self.options.weights is not None:
            # A copy or a pickle must contain the weights, because their file may be gone later.
            self.ensure_loaded()
        return {n: v for n, v in self.__dict__.items() if n not in ("id", "_inference_bilm")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__init__(None)  # sets a new id, so that the optimizer keeps separate moments
        self.__dict__.update(state)
        self._version, self._inference_bilm = new_version(), None

    def __copy__(self) -> BiLMShim:
        return copy.deepcopy(self)

    @_outside_inference_mode
    def _load(self) -> None:
        name = self.options.weights
        if name is None:
            raise ValueError(
                "This biLM has no weights yet: the config has weights = null, which means random weights, and"
                " nlp.initialize() draws them. Call it, or set weights to a name or a file"
            )
        if name == AUTO:
            name = default_weights(None)
        weights = Weights.load(find_weights(name)).without_head()
        self._set_weights(self._checked(weights, name))

    def _checked(self, weights: Weights, source: str) -> Weights:
        stated = BiLMConfig(**{**vars(weights.config), **self.shape})
        differences = stated.differences(weights.config)
        mismatches = [f"{name} = {ours} (not {its})" for name, ours, its in differences]
        if mismatches:
            raise ValueError(
                f"The config of the biLM does not match {source}: {', '.join(mismatches)}. Set them to null to use"
                " the values of the weights"
            )
        factors_by_layer(self.options.learn_rate_factor, weights.config)  # raises
        if self.options.start == "warm" and weights.start_state is None:
            raise ValueError(
                f'start = "warm", but {source} has no start state. Set start = "zero", or estimate a start state with'
                " `python -m spacy elmo convert FORMAT IN OUT_FILE --warm TEXT`, which stores it in the file"
            )
        return weights

    def _random(self) -> Weights:
        for field, names in (("n_words", "vocabulary"), ("n_symbols", "alphabet")):
            if self.shape.get(field):
                raise ValueError(
                    f"{field} = {self.shape[field]} with weights = null: such a biLM needs the {names} of a weights"
                    f" file. Set weights to a file, or {field} to 0"
                )
        bilm = BiLM(BiLMConfig(**self.shape))
        return Weights.from_bilm(bilm)

    def _set_weights(self, weights: Weights) -> None:
        device = self._device or get_torch_default_device()
        bilm = weights.build_bilm().to(device)
        require_gradients(bilm, self.trainable)
        self._vocabulary, self._card = weights.vocabulary, weights.card
        self._start_state = weights.start_state
        self._counters, self._version = change_counters(bilm), new_version()
        # The network is set last: as soon as other threads see it, they use the attributes above.
        self._model = bilm
