"""Join pipelines that share a biLM: the components of all of them read one `elmo`.

python join_pipelines.py OUT training/la_udante-ud/model-best training/names/model-best
"""

import argparse
import shutil
from pathlib import Path

import spacy
from spacy.language import Language


def join(paths: list[Path]) -> Language:
    """Return the first pipeline with the components of the others, which listen to its `elmo`.

    Raises:
        ValueError: a pipeline has another biLM than the first, or a component of the same name.
    """
    joined, *others = map(spacy.load, paths)
    expected = _bilm(joined)
    for path, other in zip(paths[1:], others, strict=True):
        if _bilm(other) != expected:
            raise ValueError(
                f"{path} has another biLM than {paths[0]}. Train both with the same weights and options of elmo"
            )
        # Directly after elmo: behind a parser, named entities could not cross the sentence borders that it sets.
        position = joined.pipe_names.index("elmo") + 1
        for name in reversed(other.pipe_names):
            if name != "elmo":
                joined.add_pipe(name, source=other, before=joined.pipe_names[position])
    return joined


def _bilm(nlp: Language) -> tuple[bytes, list[str]]:
    """Return the weights of the biLM in a pipeline, and the options of elmo that change vectors."""
    config = nlp.config["components"]["elmo"]
    options = [str(config[name]) for name in ("dtype", "get_spans", "precision", "start")]
    return nlp.get_pipe("elmo").model.to_bytes(), options


def main() -> None:
    """Write the joined pipeline."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("pipelines", type=Path, nargs="+", metavar="PIPELINE")
    args = parser.parse_args()
    joined = join(args.pipelines)
    # Otherwise components of an older pipeline would stay.
    shutil.rmtree(args.out, ignore_errors=True)
    joined.to_disk(args.out)


if __name__ == "__main__":
    main()
