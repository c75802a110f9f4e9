"""Write the README of each package in models/ from the card of its weights and from models/cards.

python -m scripts.model_cards            # writes the files
python -m scripts.model_cards --check    # fails if a file is different
"""

import argparse
from pathlib import Path

from scripts.marked_page import ROOT
from spacy_elmo.bilm.weights import Weights
from spacy_elmo.lab.package import model_card
from spacy_elmo.text.json_object import read_json_object


def cards(models: Path) -> dict[Path, str]:
    """Return the content of each README by its path. It is the same that `spacy elmo package --card` writes."""
    written = {}
    for file in sorted(models.glob("*/*/*.safetensors")):
        weights = Weights.load(file)
        package = file.parents[1]
        fields = read_json_object(models / "cards" / f"{package.name}.json")
        readme = package / "README.md"
        written[readme] = model_card(file.stem, weights.card | fields, weights.config.spelling)
    return written


def main() -> None:
    """Write the files, or check that they are up to date."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing, and fail if a file is different"
    )
    args = parser.parse_args()
    for path, content in cards(ROOT / "models").items():
        if not args.check:
            path.write_text(content, "utf8")
        elif path.read_text("utf8") != content:
            raise SystemExit(f"{path} is out of date: run python -m scripts.model_cards")


if __name__ == "__main__":
    main()
