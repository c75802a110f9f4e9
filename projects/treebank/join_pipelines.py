"""Join pipelines that share a biLM: the components of all of them read one `elmo`.

python join_pipelines.py OUT training/la_udante-ud/model-best training/names/model-best
"""

import argparse
from pathlib import Path

import spacy
from spacy.language import Language


def join(paths: list[Path]) -> Language:
    """Return the first pipeline with the components of the others, which listen to its `elmo`.

    Raises:
        ValueError: a pipeline has another biLM than the first, or a component of the same name.
    """
    joined, *others = map(spacy.load, paths)
    checksum = _checksum(joined)
    for path, other in zip(paths[1:], others, strict=True):
        if _checksum(other) != checksum:
            raise ValueError(
                f"{path} has another biLM than {paths[0]}. Train both with the same weights"
            )
        for name in other.pipe_names:
            if name != "elmo":
                joined.add_pipe(name, source=other)
    return joined


def _checksum(nlp: Language) -> str:
    """Return a digest of the weights of the biLM in a pipeline."""
    return nlp.get_pipe("elmo").model.shims[0].checksum()


def main() -> None:
    """Write the joined pipeline."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("pipelines", type=Path, nargs="+", metavar="PIPELINE")
    args = parser.parse_args()
    try:
        join(args.pipelines).to_disk(args.out)
    except (OSError, ValueError) as error:
        raise SystemExit(str(error)) from error


if __name__ == "__main__":
    main()
