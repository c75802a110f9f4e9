"""Table with the statistics of a prepared corpus, for the commands `prepare` and `pretrain`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wasabi import msg

_MANY_PASSES = 20

if TYPE_CHECKING:
    from ..pretraining.config import PretrainConfig
    from ..pretraining.corpus.prepared import Corpus
    from ..pretraining.training.initial_weights import GivenWeights


def show_corpus(corpus: Corpus, config: PretrainConfig, given: GivenWeights) -> None:
    """Print the size of a prepared corpus, the share of words that the vocabulary covers, and the shares of
    words and sentences that are too long.

    Args:
        config: config of the pretraining run, which determines the vocabulary and the maximum lengths.
        given: the weights files that the config names.
    """
    from ..pretraining.estimate import statistics

    stats = statistics(config, corpus, given)
    rows = [
        ("training words", f"{len(corpus.train.ids):,}"),
        ("training sentences", f"{len(corpus.train.lengths):,}"),
        ("held-out words", f"{len(corpus.dev.ids):,}"),
        ("held-out sentences", f"{len(corpus.dev.lengths):,}"),
        ("types", f"{len(corpus.types) - 3:,}"),
        (
            "vocabulary",
            f"{stats.vocab_size:,}, covers {stats.covered:.1%} of the training words and"
            f" {stats.held_out_covered:.1%} of the held-out words",
        ),
        (
            "cut words",
            f"{stats.long_words:.3%} of the training words (longer than {config.bilm.max_characters - 2} bytes)",
        ),
        (
            "cut sentences",
            f"{stats.long_sentences:.2%} of the training sentences (longer than {config.training.max_length} words)",
        ),
    ]
    if stats.passes is not None:
        rows.append(("passes", f"{stats.passes:,.1f} over the training words"))
    msg.table(rows)
    if stats.passes is not None and stats.passes > _MANY_PASSES:
        msg.warn(
            f"The run reads the training words {stats.passes:,.0f} times. After 5 to 10 passes, the held-out perplexity"
            " usually rises again. Use more text, or lower the limit that ends the run, for example with"
            " --training.max_epochs 10. model-best keeps the best weights"
        )
    if stats.covered == 1 and stats.held_out_covered < 1 and not any(given):
        repeated = 3 + int((corpus.counts[3:] > 1).sum())
        size, negatives = min(repeated, stats.vocab_size - 1), config.training.negatives
        fewer = f" and training.negatives to at most {size}" if (negatives or 0) > size else ""
        advice = f"set training.vocab_size to {size}{fewer}" if size > 3 else "use more text"
        msg.warn(
            "The vocabulary contains every training word, so the model never learns <UNK>. Unknown words in the"
            f" held-out text will have a very high perplexity. So that rare words become <UNK>, {advice}"
        )
