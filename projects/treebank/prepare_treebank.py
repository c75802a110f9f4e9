"""Look at a treebank before anything is trained, and write what the training needs.

    python prepare_treebank.py assets/pos/got_proiel-ud --lang got --licence "CC BY-NC-SA 3.0" --release r2.17

It reads NAME-train.conllu, NAME-test.conllu and NAME-dev.conllu (or .conllu.xz). Without a dev part, it takes the last
tenth of the train part. It writes the parts to `corpus`, in CoNLL-U and as binary Docs. To `training`, it writes the
configs of the biLM and of the pipeline, and `card.json` for the package.
"""

import argparse
import os
import re
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import spacy
import srsly
from confection import Config
from read_conllu import (
    COLUMNS,
    DEPREL,
    FEATS,
    FORM,
    HEAD,
    LEMMA,
    UPOS,
    XPOS,
    Sentence,
    lacks,
    read_conllu,
)
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

LAYERS = {"tagger": [XPOS], "morphologizer": [UPOS, FEATS], "lemmatizer": [LEMMA], "parser": [HEAD]}
"""The columns that a component learns. One of them is enough."""
RARE = 0.01
"""Marks that fewer of the words have, such as those of foreign names, are kept."""
MANY = 200_000
"""With so many training words, a biLM that has read more text stays frozen."""
CORPUS, TRAINING = Path("corpus"), Path("training")
TEXT = CORPUS / "text"
"""What the biLM reads: the words of the treebank, and files `*.txt` of the user."""


def unknown_variables() -> list[str]:
    """Return each NAME in `--vars.NAME` of the command `spacy project run` that project.yml does not have. spaCy
    ignores them."""
    parent = str(os.getppid())
    if Path("/proc").exists():
        command = Path("/proc", parent, "cmdline").read_text().replace("\0", " ")
    elif os.name == "posix":
        ps = ["ps", "-o", "args=", "-p", parent]
        command = subprocess.run(ps, capture_output=True, text=True).stdout
    else:
        return []
    given = set(re.findall(r"--vars\.([\w-]+)", command))
    return sorted(given - set(srsly.read_yaml("project.yml")["vars"])) if given else []


def read_parts(name: Path) -> tuple[dict[str, list[Sentence]], list[str]]:
    """Return the sentences of each part, and what is wrong with the files. Print what was dropped."""
    parts, problems = {}, []
    for part in ("train", "dev", "test"):
        files = [Path(f"{name}-{part}.conllu{suffix}") for suffix in ("", ".xz")]
        parts[part] = []
        for file in filter(Path.exists, files):
            parts[part], dropped, wrong = read_conllu(file)
            problems += wrong if parts[part] or wrong else [f"{file} has no sentences"]
            for what, count in dropped.items():
                print(f"{file}: dropped {count:,} {what}")
            break
        else:
            if part != "dev":
                others = {
                    path.name.rsplit("-", 1)[0] for path in name.parent.glob("*-train.conll*")
                }
                problems.append(
                    f"there is no file {files[0]} or {files[1].name}. Treebanks in {name.parent}:"
                    f" {', '.join(sorted(others)) or 'none'}"
                )
    return parts, problems


def summary(sentences: list[Sentence]) -> str:
    """Return the numbers of sentences and words, and of the words that lack a column."""
    words = [word for sentence in sentences for word in sentence.words]
    lacking = {
        COLUMNS[column]: sum(lacks(word, column) for word in words)
        for column in (UPOS, XPOS, LEMMA, HEAD)
    }
    without = [f"{name} {n:,} ({n / len(words):.1%})" for name, n in lacking.items() if n]
    counts = f"{len(sentences):,} sentences, {len(words):,} words"
    return "; without ".join([counts, *filter(None, [", ".join(without)])])


def components_without_data(sentences: list[Sentence]) -> list[str]:
    """Return the components that have nothing to learn, because no two words have different values."""
    words = [word for sentence in sentences for word in sentence.words]

    def varies(column: int) -> bool:
        return len({word[column] for word in words if not lacks(word, column)}) > 1

    return [name for name, columns in LAYERS.items() if not any(map(varies, columns))]


def make_doc(vocab: Vocab, sentence: Sentence) -> Doc:
    """Return the words and the annotation of a sentence. What a column lacks is missing annotation."""
    words = sentence.words
    annotation: dict[str, Any] = {"sent_starts": [i == 0 for i in range(len(words))]}
    # In an incomplete tree, spaCy would start a sentence at each word that has no head.
    if sentence.is_tree:
        heads = [int(word[HEAD]) - 1 for word in words]
        annotation["heads"] = [i if head < 0 else head for i, head in enumerate(heads)]
        annotation["deps"] = ["ROOT" if word[HEAD] == "0" else word[DEPREL] for word in words]
    for name, column in {"lemmas": LEMMA, "pos": UPOS, "tags": XPOS, "morphs": FEATS}.items():
        annotation[name] = ["" if lacks(word, column) else word[column] for word in words]
    doc = Doc(vocab, [word[FORM] for word in words], sentence.spaces, **annotation)
    for token in doc:
        if not token.pos:
            token.set_morph(None)  # "no features" would be an analysis
    return doc


def make_docs(sentences: list[Sentence], *, together: int = 1) -> Iterator[Doc]:
    """Yield Docs of several sentences, but those without a tree alone."""
    vocab = Vocab()
    trees = [sentence for sentence in sentences if sentence.is_tree]
    others = [sentence for sentence in sentences if not sentence.is_tree]
    groups = [trees[start : start + together] for start in range(0, len(trees), together)]
    for group in [*groups, *([sentence] for sentence in others)]:
        yield Doc.from_docs([make_doc(vocab, sentence) for sentence in group])


def write_docs(docs: list[Doc], path: Path, *, split_anew: bool) -> None:
    """Write binary Docs. Unless a tokenizer splits their text anew in training, the words are given."""
    for doc in docs:
        doc.has_unknown_spaces = not split_anew
    DocBin(docs=docs).to_disk(path)


def marks(text: str) -> set[str]:
    """Return the combining marks of a text."""
    letters = unicodedata.normalize("NFD", text)
    return {letter for letter in letters if unicodedata.category(letter) == "Mn"}


def marks_without_lemmas(sentences: list[Sentence]) -> set[str]:
    """Return the marks of words that no lemma has, such as the points of Hebrew."""
    words = [word for sentence in sentences for word in sentence.words if not lacks(word, LEMMA)]
    kept = {mark for word in words for mark in marks(word[LEMMA])}
    dropped = [marks(word[FORM]) - kept for word in words]
    return set().union(*dropped) if sum(map(bool, dropped)) > RARE * len(words) else set()


def bilm_settings(words: list[str]) -> dict[str, dict[str, Any]]:
    """Return the settings of a biLM for so many words and distinct words."""
    large, types = len(words) > 500_000, len(set(words))
    return {
        "model": {"dim": 896 if large else 512, "projection": 192 if large else 128},
        "training": {
            # Words outside the classes are <UNK>, which the biLM must see in training.
            "vocab_size": min(types // 2, 100_000),
            "negatives": min(types // 4, 4096),
            "dropout": 0.1,
            "max_epochs": 10,
            "max_tokens": None,
            "batch_tokens": 4096 if large else 1024,
            "warmup_steps": 200 if large else 50,
            "eval_every": 500 if large else 50,
        },
    }


def pipeline_settings(words: int, weights: str | None) -> dict[str, dict[str, Any]]:
    """Return the settings of a pipeline that differ from treebank_elmo.cfg.

    Args:
        words: number of training words.
        weights: a biLM that has read more text; None: that of the treebank.
    """
    if weights and words > MANY:
        return {"components": {"elmo": {"weights": weights}}}
    mix = {"dropout": 0.5}
    heads = ("tagger", "morphologizer", "lemmatizer", "parser")
    components = {name: {"model": {"tok2vec": {"*": {"elmo": mix}}}} for name in heads}
    # A known lemma is more often right than the most probable edit of an unknown word.
    components["lemmatizer"]["top_k"] = 20
    # The same holds for a known analysis.
    components["morphologizer"]["factory"] = "lexicon_morphologizer"
    # The full rate would undo what the biLM has learned from more text.
    rate = (
        {"weights": weights, "lr_scale": 0.1}
        if weights
        else {"weights": "training/bilm/model-best.safetensors"}
    )
    return {
        "components": {
            "elmo": {"frozen": False, "dtype": "float32", **rate},
            "tok2vec": {"model": {"input": mix}},
            **components,
        },
        # Changes of case and line breaks are for chats and headlines.
        "corpora": {"train": {"augmenter": None}},
        "training": {
            "dropout": 0.5,
            "max_steps": 3200 if weights else 1600 if words < 31_000 else 2400,
            # Small batches at a high rate learn more in the same time.
            "batcher": {"size": 300},
            "optimizer": {"learn_rate": {"initial_rate": 0.004, "warmup_steps": 100}},
        },
    }


def shipped_config(name: str, path: Path) -> Config:
    """Return a config of spacy-elmo, with its variables."""
    command = [
        sys.executable,
        "-m",
        "spacy",
        "elmo",
        "init-config",
        path,
        "--from",
        name,
        "--force",
    ]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return Config().from_disk(path, interpolate=False)


def language_class(lang: str) -> str:
    """Return the code of the pipeline's class of language: `xx` if spaCy has no other."""
    try:
        return spacy.blank(lang).lang
    except ImportError:
        return "xx"


def package_name(lang: str, treebank: str) -> str:
    """Return the name of a package without its language: `proiel_elmo` for the treebank `got_proiel-ud`."""
    name = re.sub(r"\W+", "_", treebank.removesuffix("-ud")).lower()
    return f"{name.removeprefix(f'{lang}_')}_elmo"


def main() -> None:
    """Check everything, then write the files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("treebank", type=Path, metavar="DATA/pos/NAME")
    parser.add_argument("--lang", required=True, help="code of the language")
    parser.add_argument("--weights", default="", help="a biLM; without one, the treebank trains it")
    parser.add_argument("--tokenizer", choices=["treebank", "spacy"], default="treebank")
    parser.add_argument(
        "--max-steps", default="", help="steps of the pipeline; default: by the size"
    )
    parser.add_argument("--licence", required=True, help="licence of the treebank")
    parser.add_argument("--release", required=True, help="release or commit of the treebank")
    parser.add_argument("--author", required=True, help="who makes the pipeline")
    parser.add_argument("--name", default="", help="name of the package; default: by the treebank")
    args = parser.parse_args()
    if unknown := unknown_variables():
        sys.exit(f"project.yml has no variables {', '.join(unknown)}")
    asked = {name: getattr(args, name) for name in ("licence", "release", "author")}
    if empty := [f'--vars.{name} "..."' for name, value in asked.items() if not value.strip()]:
        sys.exit(
            f"the package states licence and release of the treebank, and its author: {' '.join(empty)}"
        )
    needed = {"udtools": "udtools", "ufal.udpipe": "ufal"}
    if missing := [name for name, module in needed.items() if find_spec(module) is None]:
        sys.exit(f"The commands need more packages: python -m pip install {' '.join(missing)}")
    parts, problems = read_parts(args.treebank)
    if problems:
        more = f"\n... and {len(problems) - 20:,} more" if len(problems) > 20 else ""
        sys.exit("\n".join(problems[:20]) + more)
    left_out = components_without_data(parts["train"])
    if len(left_out) == len(LAYERS):
        sys.exit(f"{args.treebank}: no column has annotation")

    if not parts["dev"]:
        tenth = max(1, len(parts["train"]) // 10)
        parts["train"], parts["dev"] = parts["train"][:-tenth], parts["train"][-tenth:]
        print(f"No dev part: the last {tenth} sentences of the train part are the dev part")
    for part, sentences in parts.items():
        print(f"{part}: {summary(sentences)}")
    for component in left_out:
        columns = " and ".join(COLUMNS[column] for column in LAYERS[component])
        print(f"No {component}, because all words have the same {columns}, or none")
    lang = language_class(args.lang)
    if lang != args.lang:
        print(f"The pipeline has the language {lang}, because spaCy does not know {args.lang!r}")
    learned = args.tokenizer == "treebank" and any(sentence.has_text for sentence in parts["train"])
    if not learned:
        print(f"Tokenizer: spaCy's of the language {lang}")
        if args.tokenizer == "treebank":
            print(
                "The treebank has no text (# text, SpaceAfter=No) from which one could be learned"
            )

    TEXT.mkdir(parents=True, exist_ok=True)
    TRAINING.mkdir(exist_ok=True)
    for part, sentences in parts.items():
        (CORPUS / f"{part}.conllu").write_text("".join(map(str, sentences)), "utf8")
    split_anew = args.tokenizer == "spacy"
    alone = list(make_docs(parts["train"]))
    # Docs of ten sentences, in which the parser learns where sentences end, and each sentence alone.
    train = [*make_docs(parts["train"], together=10), *alone]
    write_docs(train, CORPUS / "train.spacy", split_anew=split_anew)
    dev = list(make_docs(parts["dev"], together=10))
    write_docs(dev, CORPUS / "dev.spacy", split_anew=split_anew)
    write_docs(alone, TEXT / "treebank.spacy", split_anew=False)

    words = [token.text for doc in alone for token in doc]
    card = {"lang": args.lang, "name": args.name or package_name(args.lang, args.treebank.name)}
    card |= {"treebank": args.treebank.name, "words": len(words), "weights": args.weights, **asked}
    srsly.write_json(TRAINING / "card.json", card)
    settings = pipeline_settings(len(words), args.weights or None)
    settings |= {
        "paths": {"train": str(CORPUS / "train.spacy"), "dev": str(CORPUS / "dev.spacy")},
        "nlp": {"lang": lang},
    }
    if learned:
        settings["nlp"]["tokenizer"] = {"@tokenizers": "spacy-elmo.UDPipeTokenizer.v1"}
        settings["initialize"] = {"tokenizer": {"path": str(TRAINING / "tokenizer.udpipe")}}
    if args.max_steps:
        settings.setdefault("training", {})["max_steps"] = int(args.max_steps)
    pipeline = shipped_config("treebank_elmo", TRAINING / "pipeline.cfg").merge(settings)
    for component in left_out:
        pipeline["nlp"]["pipeline"].remove(component)
        del pipeline["components"][component]
    pipeline.to_disk(TRAINING / "pipeline.cfg")

    bilm = TRAINING / "bilm.cfg"
    bilm.unlink(missing_ok=True)
    if not args.weights:
        for more in sorted(TEXT.glob("*.txt")):
            words += more.read_text("utf8").split()
        settings = bilm_settings(words)
        if dropped := marks_without_lemmas(parts["train"]):
            names = ", ".join(sorted(unicodedata.name(mark, hex(ord(mark))) for mark in dropped))
            print(f"The biLM and the lemmatizer drop marks that no lemma has: {names}")
            replace = [[mark, ""] for mark in sorted(dropped)]
            settings["model"] |= {"unicode_form": "NFD", "replace": replace}
        settings["paths"] = {"raw_text": str(TEXT), "dev_text": str(CORPUS / "dev.spacy")}
        settings["prepare"] = {"lang": lang}
        settings["card"] = {"name": args.treebank.name, "licence": args.licence}
        shipped_config("pretrain_mini", bilm).merge(settings).to_disk(bilm)


if __name__ == "__main__":
    main()
