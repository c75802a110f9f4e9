"""Save a pipeline with its weights rounded to 16 bits, before it is scored.

    python save_pipeline.py training/pipeline training/treebank/model-last training/names/model-best

The components of several trainings on one biLM are joined: all of them read one `elmo`. The biLM keeps the digits of
float16, in which it is stored, and the other weights those of bfloat16: the scores hardly change, and a wheel is half
as large.
"""

import argparse
import shutil
from pathlib import Path

import spacy
import torch
from spacy.language import Language
from spacy.util import load_config
from thinc.api import Model


def join(paths: list[Path]) -> Language:
    """Return the first pipeline with the components of the others, which listen to its `elmo`. They replace those of
    the same name.

    Raises:
        ValueError: a pipeline has another biLM than the first.
    """
    elmo = load_config(paths[0] / "config.cfg")["components"]["elmo"]
    # The package names its biLM, instead of a path on this machine.
    joined = spacy.load(paths[0], config={"components.elmo.weights": Path(elmo["weights"]).stem})
    others = [spacy.load(path) for path in paths[1:]]
    for path, other in zip(paths[1:], others, strict=True):
        if _bilm(other) != _bilm(joined):
            raise ValueError(
                f"{path} has another biLM than {paths[0]}. Train both with the same weights and options of elmo"
            )
        names = [name for name in other.pipe_names if name != "elmo"]
        for name in names:
            if name in joined.pipe_names:
                joined.remove_pipe(name)
        # Directly after elmo: a parser keeps to sentences that are set before, and entities cannot cross them, so the
        # pipeline of `ner` is the last argument.
        position = joined.pipe_names.index("elmo") + 1
        for name in reversed(names):
            joined.add_pipe(name, source=other, before=joined.pipe_names[position])
    return joined


def _bilm(nlp: Language) -> tuple[bytes, list[str]]:
    """Return the weights of the biLM in a pipeline, and the options of elmo that change vectors."""
    config = nlp.config["components"]["elmo"]
    options = [str(config[name]) for name in ("dtype", "get_spans", "precision", "start")]
    return nlp.get_pipe("elmo").model.to_bytes(), options


def round_weights(nlp: Language) -> None:
    """Round the weights of the biLM to float16 and those of the components on it to bfloat16, in place."""
    for _, component in nlp.components:
        model = getattr(component, "model", None)
        for node in model.walk() if isinstance(model, Model) else ():
            for name in node.param_names:
                if node.has_param(name):
                    rounded = torch.from_numpy(node.get_param(name)).bfloat16()
                    node.set_param(name, rounded.float().numpy())
            for shim in node.shims:
                with torch.no_grad():
                    for parameter in shim.bilm.parameters():
                        parameter.copy_(parameter.half())


def main() -> None:
    """Write the pipeline."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("pipelines", type=Path, nargs="+", metavar="PIPELINE")
    args = parser.parse_args()
    nlp = join(args.pipelines)
    round_weights(nlp)
    # Otherwise components of an older pipeline would stay.
    shutil.rmtree(args.out, ignore_errors=True)
    nlp.to_disk(args.out)


if __name__ == "__main__":
    main()
