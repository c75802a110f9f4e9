"""Prepare a small treebank for the workflow `from-scratch`: binary Docs, and the configs of the biLM and the pipeline.

    python prepare_treebank.py DATA/pos/NAME corpus --lang got --bilm bilm.cfg --pipeline small.cfg

It reads NAME-train.conllu, NAME-test.conllu and NAME-dev.conllu (or .conllu.xz). Without a dev part, it takes the last
tenth of the train part. It writes OUT/text/train.spacy, OUT/dev.spacy and OUT/test.conllu. It fills in the configs: the
files, the language (`xx` if spaCy does not know it), the settings of the biLM that depend on the size of the text, and
those of the pipeline that suit little text.
"""

import argparse
import lzma
import unicodedata
from collections.abc import Iterable
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import spacy
from confection import Config
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training.converters import conllu_to_docs

FEW = 0.9
"""If the tokenizer finds fewer of the words in the text, scores from plain text mean little."""
RARE = 0.01
"""Marks that fewer of the words have, such as those of foreign names, are kept."""


def sentences(name: Path, part: str) -> list[str]:
    """Return the sentences of a part in CoNLL-U; an empty list if there is no file."""
    for path, opened in ((f"{name}-{part}.conllu", open), (f"{name}-{part}.conllu.xz", lzma.open)):
        if Path(path).exists():
            with opened(path, "rt", encoding="utf-8-sig") as file:
                return [block for block in file.read().strip().split("\n\n") if block.strip()]
    return []


def docs(blocks: list[str], n_sents: int) -> list[Doc]:
    """Return Docs of `n_sents` sentences with the words of the treebank, which no tokenizer will split anew."""
    made = list(conllu_to_docs("\n\n".join(blocks) + "\n\n", n_sents=n_sents, no_print=True))
    for doc in made:
        doc.has_unknown_spaces = True
        for token in doc:
            # A treebank without lemmas.
            if token.lemma_ == "_" != token.text:
                token.lemma_ = ""
    return made


def found(nlp: Language, blocks: Iterable[str]) -> float | None:
    """Return the share of the words that the tokenizer finds in the text of the sentences; None without text."""
    total = hits = 0
    for block in blocks:
        lines = block.split("\n")
        rows = [line.split("\t") for line in lines if line[:1].isdigit()]
        words = [row[1] for row in rows if row[0].isdigit()]
        texts = [line[9:] for line in lines if line.startswith("# text = ")]
        if not texts:
            continue
        tokens = [token.text for token in nlp.make_doc(texts[0])]
        matches = SequenceMatcher(None, words, tokens, autojunk=False).get_matching_blocks()
        hits += sum(match.size for match in matches)
        total += len(words)
    return hits / total if total else None


def marks(text: str) -> set[str]:
    """Return the combining marks of a text."""
    letters = unicodedata.normalize("NFD", text)
    return {letter for letter in letters if unicodedata.category(letter) == "Mn"}


def marks_without_lemmas(docs: list[Doc]) -> set[str]:
    """Return the marks of words that no lemma has, such as the points of Hebrew."""
    words = [token for doc in docs for token in doc if token.lemma]
    kept = {mark for word in words for mark in marks(word.lemma_)}
    dropped = [marks(word.text) - kept for word in words]
    return set().union(*dropped) if sum(map(bool, dropped)) > RARE * len(words) else set()


def bilm_settings(words: int, types: int) -> dict[str, dict[str, Any]]:
    """Return the settings of a biLM for a text of so many words and distinct words."""
    large = words > 500_000
    return {
        "model": {"dim": 896 if large else 512, "projection": 192 if large else 128},
        "training": {
            # Words outside the classes are <UNK>, which the biLM must see in training.
            "vocab_size": min(types // 2, 100_000),
            "negatives": min(types // 4, 4096),
            "dropout": 0.1,
            # An epoch reads each word of the treebank twice.
            "max_epochs": 5,
            "max_tokens": None,
            "batch_tokens": 4096 if large else 1024,
            "warmup_steps": 200 if large else 50,
            "eval_every": 500 if large else 50,
        },
    }


def pipeline_settings() -> dict[str, dict[str, Any]]:
    """Return the settings of a pipeline for little text: the tasks train the biLM further, with dropout."""
    mix = {"dropout": 0.5}
    heads = ("tagger", "morphologizer", "lemmatizer", "parser")
    components = {name: {"model": {"tok2vec": {"*": {"elmo": mix}}}} for name in heads}
    # A known lemma is more often right than the most probable edit of an unknown word.
    components["lemmatizer"]["top_k"] = 20
    # The same holds for a known analysis.
    components["morphologizer"]["factory"] = "lexicon_morphologizer"
    return {
        "components": {
            "elmo": {"frozen": False, "dtype": "float32"},
            "tok2vec": {"model": {"input": mix}},
            **components,
        },
        # Changes of case and line breaks are for chats and headlines.
        "corpora": {"train": {"augmenter": None}},
        "training": {
            "dropout": 0.5,
            # Small batches at a high rate learn more in the same time.
            "batcher": {"size": 300},
            "optimizer": {"learn_rate": {"initial_rate": 0.004, "warmup_steps": 100}},
        },
    }


def fill(path: Path, settings: dict[str, dict[str, Any]]) -> None:
    """Set values in the sections of a config."""
    Config().from_disk(path, interpolate=False).merge(settings).to_disk(path)


def main() -> None:
    """Write the files, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("treebank", type=Path, metavar="DATA/pos/NAME")
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("--lang", required=True, help="code of the language")
    parser.add_argument("--bilm", type=Path, required=True, help="config of `elmo pretrain`")
    parser.add_argument("--pipeline", type=Path, required=True, help="config of `train`")
    args = parser.parse_args()
    parts = {part: sentences(args.treebank, part) for part in ("train", "dev", "test")}
    for part in ("train", "test"):
        if not parts[part]:
            parser.error(f"there are no sentences in {args.treebank}-{part}.conllu or .conllu.xz")
    if not parts["dev"]:
        tenth = max(1, len(parts["train"]) // 10)
        parts["train"], parts["dev"] = parts["train"][:-tenth], parts["train"][-tenth:]
        print(f"No dev part: the last {tenth} sentences of the train part are the dev part")
    try:
        nlp = spacy.blank(args.lang)
    except ImportError as error:
        nlp = spacy.blank("xx")
        print(f"The pipeline has the language xx, because spaCy cannot load {args.lang!r}: {error}")
    share = found(nlp, parts["test"])
    if share is not None:
        print(
            f"The tokenizer of {nlp.lang} finds {share:.0%} of the words of the test part in its text"
        )
        if share < FEW:
            print(
                "That is little: give the pipeline words that another program has split (README.md)"
            )

    text, dev = args.out / "text", args.out / "dev.spacy"
    text.mkdir(parents=True, exist_ok=True)
    alone = docs(parts["train"], 1)
    # Ten sentences, in which the parser learns where sentences end, and each sentence alone.
    DocBin(docs=[*docs(parts["train"], 10), *alone]).to_disk(text / "train.spacy")
    DocBin(docs=docs(parts["dev"], 10)).to_disk(dev)
    (args.out / "test.conllu").write_text("\n\n".join(parts["test"]) + "\n\n", "utf8")
    words = [token.text for doc in alone for token in doc]
    for more in sorted(text.glob("*.txt")):
        words += more.read_text("utf8").split()
    settings = bilm_settings(len(words), len(set(words)))
    dropped = marks_without_lemmas(alone)
    if dropped:
        names = ", ".join(sorted(unicodedata.name(mark, hex(ord(mark))) for mark in dropped))
        print(f"The biLM and the lemmatizer drop marks that no lemma has: {names}")
        replace = [[mark, ""] for mark in sorted(dropped)]
        settings["model"] |= {"unicode_form": "NFD", "replace": replace}
    settings["paths"] = {"raw_text": str(text), "dev_text": str(dev)}
    fill(args.bilm, settings | {"prepare": {"lang": nlp.lang}})
    paths = {"train": str(text / "train.spacy"), "dev": str(dev)}
    fill(args.pipeline, pipeline_settings() | {"paths": paths, "nlp": {"lang": nlp.lang}})


if __name__ == "__main__":
    main()
