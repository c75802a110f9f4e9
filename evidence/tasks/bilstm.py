"""A bidirectional LSTM that computes each sequence of a batch independently of the others.

In thinc's `PyTorchLSTM` the backward direction starts in the padding, so its output depends on the longest sequence of
the batch.
"""

from collections.abc import Callable

import torch
from thinc.api import ArgsKwargs, Model, PyTorchWrapper, torch2xp, xp2torch
from thinc.types import Floats2d
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class BiLSTM(nn.Module):
    """A bidirectional LSTM over padded sequences. Its outputs beyond the length of a sequence are zeros.

    Args:
        nO: width of the output, both directions together.
        nI: width of the input.
        depth: number of layers.
    """

    def __init__(self, nO: int, nI: int, depth: int = 1) -> None:
        super().__init__()
        self.lstm = nn.LSTM(nI, nO // 2, depth, batch_first=True, bidirectional=True)
        for name, parameter in self.lstm.named_parameters():
            if name.startswith("weight"):
                # As in He et al. (2017). With torch's small initial values, the loss does not fall for hundreds of
                # steps.
                for gate in parameter.detach().chunk(4):
                    nn.init.orthogonal_(gate)
            else:
                nn.init.zeros_(parameter)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Compute (batch, longest, nI) -> (batch, longest, nO)."""
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        return pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=x.shape[1])[
            0
        ]


class WithInput(nn.Module):
    """Output and input of a layer, concatenated: [h ; x]. They replace the highway connections of He et al. (2017).

    Without a connection around the LSTM, the loss of srl did not fall below that of equal predictions for 400 steps.
    """

    def __init__(self, layer: BiLSTM) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Compute (batch, longest, nI) -> (batch, longest, nO + nI)."""
        return torch.cat([self.layer(x, lengths), x], dim=2)


def bilstm_with_input(nO: int, nI: int, depth: int) -> Model[list[Floats2d], list[Floats2d]]:
    """Return a thinc layer that concatenates the output of a `BiLSTM` and its input: (n, nI) -> (n, nO + nI)."""
    network = WithInput(BiLSTM(nO, nI, depth))
    return PyTorchWrapper(network, convert_inputs=_padded, convert_outputs=_sequences)


def _padded(
    model: Model, X: list[Floats2d], is_train: bool
) -> tuple[ArgsKwargs, Callable[[ArgsKwargs], list[Floats2d]]]:
    lengths = [len(x) for x in X]

    def unpadded(gradients: ArgsKwargs) -> list[Floats2d]:
        return model.ops.unpad(torch2xp(gradients.args[0]), lengths)

    padded = xp2torch(model.ops.pad(X), requires_grad=is_train)
    return ArgsKwargs(args=(padded, torch.tensor(lengths)), kwargs={}), unpadded


def _sequences(
    model: Model, inputs_outputs: tuple[list[Floats2d], Tensor], is_train: bool
) -> tuple[list[Floats2d], Callable[[list[Floats2d]], ArgsKwargs]]:
    X, written = inputs_outputs

    def padded(gradient: list[Floats2d]) -> ArgsKwargs:
        gradients = xp2torch(model.ops.pad(gradient))
        return ArgsKwargs(args=((written,),), kwargs={"grad_tensors": gradients})

    return model.ops.unpad(torch2xp(written), [len(x) for x in X]), padded
