"""The sizes of biLMs that the benchmarks measure."""

from spacy_elmo.bilm.config import BiLMConfig

SIZES = {
    # The size of en_mini_v4.
    "mini": BiLMConfig(
        dim=512, projection=128, highways=1,
        filters=((1, 16), (2, 32), (3, 64), (4, 96), (5, 128), (6, 96), (7, 80)),
    ),
    # The size of en_base_v2.
    "base": BiLMConfig(
        dim=1024, projection=256, highways=1,
        filters=((1, 32), (2, 64), (3, 128), (4, 192), (5, 192), (6, 160), (7, 128)),
    ),
    # AllenNLP's elmo_2x1024_128_2048cnn_1xhighway.
    "small": BiLMConfig(dim=1024, projection=128, highways=1),
    # AllenNLP's elmo_2x4096_512_2048cnn_2xhighway, the size of the paper.
    "original": BiLMConfig(),
}  # fmt: skip
