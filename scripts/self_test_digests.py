"""Write the digests of `elmo info --self-test`. Run it after a change of the bundled models or of the order of a sum.

python -m scripts.self_test_digests
"""

import json

from spacy_elmo.bilm.self_test import GOLDEN, digests, small_networks
from spacy_elmo.bilm.weights import Weights
from spacy_elmo.weight_names import bundled_names, find_weights


def main() -> None:
    """Compute all digests with the kernels of this machine, and write the file."""
    networks = dict(small_networks())
    for name in bundled_names():
        bilm = Weights.load(find_weights(name)).build_bilm().prepare_for_inference("float32")
        networks[name] = digests(bilm)
    GOLDEN.write_text(json.dumps(networks, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
