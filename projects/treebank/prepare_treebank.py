"""Look at a treebank before anything is trained, and write what the training needs.

    python prepare_treebank.py assets/pos/wo_wtb-ud --lang wo --licence "CC BY-SA 4.0" --release r2.17 --author "NAME"

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
from itertools import accumulate
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
    is_annotated,
    lacks,
    read_conllu,
)
from score_pipeline import find_udeval
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

LAYERS = {"tagger": XPOS, "morphologizer": UPOS, "lemmatizer": LEMMA, "parser": HEAD}
"""The column that a component learns. The morphologizer learns analyses: a part of speech and its features."""
RARE = 0.01
"""If fewer of the words have marks that no lemma has, such as those of foreign names, all marks are kept. If the biLM's
spelling changes fewer of the lemmas, the lemmatizer uses it."""
STATED = {
    "lang": "code of the language",
    "licence": "licence of the treebank",
    "release": "release or commit of the treebank",
    "author": "who makes the package",
}
"""Options that are asked for before anything is trained."""
CORPUS, TRAINING = Path("corpus"), Path("training")
BATCH_WORDS, PASSES = 450, 80
"""Words in a batch of the accurate network, and how often it reads the training words."""
TEXT = Path("text")
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


def read_parts(name: str) -> tuple[dict[str, list[Sentence]], list[str]]:
    """Return the sentences of each part, and what is wrong with the files. Print what was dropped."""
    parts, problems, folder = {}, [], Path(f"{name}-").parent
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
                others = {path.name.rsplit("-", 1)[0] for path in folder.glob("*-train.conll*")}
                problems.append(
                    f"there is no file {files[0]} or {files[1].name}. Treebanks in {folder}:"
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
    """Return the components that have nothing to learn."""
    return [name for name, column in LAYERS.items() if not is_annotated(sentences, column)]


def is_punctuated(sentences: list[Sentence]) -> bool:
    """True if most sentences end in a punctuation mark or a symbol."""
    ends = [unicodedata.category(sentence.words[-1][FORM][-1])[0] for sentence in sentences]
    return sum(end in "PS" for end in ends) > len(ends) / 2


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
    """Yield Docs of several sentences. All sentences of a Doc have a tree, or none has one."""
    vocab = Vocab()
    trees = [sentence for sentence in sentences if sentence.is_tree]
    others = [sentence for sentence in sentences if not sentence.is_tree]
    for group in (trees, others):
        for start in range(0, len(group), together):
            docs = [make_doc(vocab, sentence) for sentence in group[start : start + together]]
            yield Doc.from_docs(docs)


def sentence_docs(nlp: Language, sentences: list[Sentence]) -> Iterator[Doc]:
    """Yield paragraphs twice, and ten sentences together and each sentence alone once, in the tokens of a pipeline, to
    learn where sentences start. A fourth of the paragraphs come again without final marks, another with lines.

    The words of the treebank would not do: if the tokenizer splits one, spaCy's `senter` learns that each part of it
    starts a sentence, such as each star of "****".
    """
    texts = [sentence.text for sentence in sentences]
    starts = [i for i, sentence in enumerate(sentences) if sentence.starts_paragraph or i == 0]
    borders = zip(starts, [*starts[1:], len(texts)], strict=True)
    paragraphs = [texts[start:end] for start, end in borders]
    unmarked = [[text.rstrip(".!?") or text for text in group] for group in paragraphs[::4]]
    tens = [texts[start : start + 10] for start in range(0, len(texts), 10)]
    for group in [*paragraphs, *paragraphs, *unmarked, *tens, *([text] for text in texts)]:
        yield _joined(nlp, group, " ")
    for group in paragraphs[1::4]:
        yield _joined(nlp, group, "\n")


def _joined(nlp: Language, texts: list[str], separator: str) -> Doc:
    doc = nlp.make_doc(separator.join(texts))
    offsets = set(accumulate((len(text) + 1 for text in texts), initial=0))
    for token in doc:
        token.is_sent_start = token.idx in offsets
    return doc


def bilm_docs(sentences: list[Sentence]) -> Iterator[Doc]:
    """Yield the words for the biLM: of each twenty sentences, ten alone and ten together. A biLM of sentences alone
    reads text without punctuation badly: on ten sentences of Gothic, its perplexity is 260 instead of 198 (dev)."""
    vocab = Vocab()
    for start in range(0, len(sentences), 10):
        group = sentences[start : start + 10]
        for text in [group] if start % 20 else [[sentence] for sentence in group]:
            yield Doc(vocab, [word[FORM] for sentence in text for word in sentence.words])


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


def replaces_letters_of_lemmas(weights: str, sentences: list[Sentence]) -> bool:
    """True if the spelling of a biLM changes lemmas, as Latin "u" for "v" does where lemmas have "v"."""
    words = [word for sentence in sentences for word in sentence.words]
    lemmas = [word[LEMMA] for word in words if not lacks(word, LEMMA)]
    elmo: Any = spacy.blank("xx").add_pipe("elmo", config={"weights": weights})
    # Lemmas are read in NFC. A biLM can have another form.
    spelled = [unicodedata.normalize("NFC", lemma) for lemma in elmo.spelling(lemmas)]
    changed = sum(a != b for a, b in zip(lemmas, spelled, strict=True))
    return changed > RARE * len(lemmas)


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


def pipeline_steps(words: int) -> int:
    """Return the number of training steps of a pipeline for so many training words."""
    return max(1000, PASSES * words // BATCH_WORDS)


def use_accurate_network(config: Config) -> None:
    """Replace the network of treebank_elmo.cfg by one that learns more from few words, and is slower.

    LSTMs read the characters of each word and then each sentence. A graph-based parser takes the place of spaCy's.
    """
    components, pipeline = config["components"], config["nlp"]["pipeline"]
    shared, dropout = components["tok2vec"]["model"], {"dropout": 0.5}
    # The LSTMs read sentences, so `senter` comes first, with a network of its own.
    components["senter"]["model"]["tok2vec"] = shared
    pipeline.remove("senter")
    pipeline.insert(pipeline.index("tok2vec"), "senter")
    components["parser"] = {
        "factory": "biaffine_parser",
        "label_smoothing": 0.03,
        "model": {
            "@architectures": "spacy-elmo.BiaffineParser.v1",
            "tok2vec": components["parser"]["model"]["tok2vec"],
        },
    }
    for name in ("tagger", "morphologizer", "lemmatizer", "parser"):
        components[name]["model"]["tok2vec"]["*"]["elmo"] |= dropout
    words = {**shared["embed"], "width": 128, "attrs": ["NORM"], "rows": [5000]}
    characters = {"@architectures": "spacy-elmo.CharLSTMEmbed.v1", "width": 256}
    inputs = {
        "words": {"@architectures": "spacy-elmo.KnownWords.v1", "embed": words},
        "characters": characters,
        "elmo": {**shared["input"], **dropout},
    }
    components["tok2vec"]["model"] = {
        "@architectures": "spacy-elmo.SentenceTok2Vec.v1",
        "embed": {"@layers": "concatenate.v1", "*": inputs},
        "encode": {"@architectures": "spacy-elmo.BiLSTMEncoder.v1", "width": 512, "depth": 2},
    }
    lemmatizer = components["lemmatizer"]
    # Edits depend on the last letters more than on the sentence.
    lemmatizer["model"]["tok2vec"]["*"]["characters"] = {**characters, "width": 128}
    # A known lemma is more often right than the most probable edit of an unknown word.
    lemmatizer["top_k"] = 20
    # The same holds for a known analysis.
    components["morphologizer"]["factory"] = "lexicon_morphologizer"
    # It replaces changes of case and line breaks, which are for chats and headlines.
    config["corpora"]["train"]["augmenter"] = {"@augmenters": "spacy-elmo.gold_sentences.v1"}
    training = config["training"]
    training["dropout"] = 0.5
    training["batcher"]["size"] = BATCH_WORDS
    training["optimizer"]["learn_rate"]["initial_rate"] = 0.002


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
    """Return the code of the pipeline's class of language: `xx` if spaCy has no other, or not without more packages."""
    try:
        return spacy.blank(lang).lang
    except ImportError:
        return "xx"


def package_name(lang: str, treebank: str) -> str:
    """Return the name of a package without its language: `proiel_elmo` for the treebank `got_proiel-ud`."""
    name = re.sub(r"\W+", "_", treebank.removesuffix("-ud")).lower()
    return f"{name.removeprefix(f'{lang}_')}_elmo"


def problems_of_the_call(args: argparse.Namespace) -> list[str]:
    """Return what is wrong with the options, and which programs are missing."""
    problems = [f"project.yml has no variable {name}" for name in unknown_variables()]
    problems += [
        f'The package states {what}: --vars.{name} "..."'
        for name, what in STATED.items()
        if not getattr(args, name).strip()
    ]
    try:
        find_udeval()
    except FileNotFoundError as error:
        problems.append(str(error))
    needed = {"build": "build"} | ({"ufal": "ufal.udpipe"} if args.tokenizer == "treebank" else {})
    missing = [package for module, package in needed.items() if find_spec(module) is None]
    if missing:
        problems.append(f"Packages are missing: python -m pip install {' '.join(missing)}")
    return problems


def write_corpus(
    parts: dict[str, list[Sentence]], *, split_anew: bool, starts: tuple[int, ...], alone: bool
) -> None:
    """Write the parts, and what the biLM and the pipeline read.

    Args:
        starts: the pipeline reads the training part in Docs of ten sentences, once from each of these sentences on.
        alone: it also reads each training sentence alone.
    """
    CORPUS.mkdir(exist_ok=True)
    TEXT.mkdir(exist_ok=True)
    for part, sentences in parts.items():
        (CORPUS / f"{part}.conllu").write_text("".join(map(str, sentences)), "utf8")
    # In Docs of ten sentences, `senter` or spaCy's parser learns where sentences end.
    train = [doc for start in starts for doc in make_docs(parts["train"][start:], together=10)]
    if alone:
        train += make_docs(parts["train"])
    write_docs(train, CORPUS / "train.spacy", split_anew=split_anew)
    dev = list(make_docs(parts["dev"], together=10))
    write_docs(dev, CORPUS / "dev.spacy", split_anew=split_anew)
    DocBin(docs=bilm_docs(parts["train"])).to_disk(TEXT / "treebank.spacy")


def write_pipeline_config(
    settings: dict[str, dict[str, Any]], left_out: list[str], *, accurate: bool, steps: int
) -> None:
    """Write the config of the pipeline without the components that have nothing to learn.

    Args:
        steps: training steps; 0: those of treebank_elmo.cfg.
    """
    path = TRAINING / "pipeline.cfg"
    config = shipped_config("treebank_elmo", path)
    if accurate:
        use_accurate_network(config)
    config = config.merge(settings)
    for component in left_out:
        config["nlp"]["pipeline"].remove(component)
        del config["components"][component]
    if accurate and "senter" in left_out:
        # The dev part has words instead of text, so the tokenizer cannot set the sentences.
        config["corpora"]["dev"] = {**config["corpora"]["train"], "path": "${paths.dev}"}
    if steps:
        # The rate falls until the last step.
        config["training"]["max_steps"] = steps
        config["training"]["optimizer"]["learn_rate"] |= {
            "total_steps": steps,
            "warmup_steps": min(250, steps // 5),
        }
    config.to_disk(path)


def write_bilm_config(sentences: list[Sentence], settings: dict[str, dict[str, Any]]) -> None:
    """Write the config of a biLM of the training part and of the files of the user."""
    words = [word[FORM] for sentence in sentences for word in sentence.words]
    for more in sorted(TEXT.glob("*.txt")):
        words += more.read_text("utf8").split()
    settings |= bilm_settings(words)
    if dropped := marks_without_lemmas(sentences):
        names = ", ".join(sorted(unicodedata.name(mark, hex(ord(mark))) for mark in dropped))
        print(f"The biLM and the lemmatizer drop marks that no lemma has: {names}")
        replace = [[mark, ""] for mark in sorted(dropped)]
        settings["model"] |= {"unicode_form": "NFD", "replace": replace}
    settings["paths"] = {"raw_text": str(TEXT), "dev_text": str(CORPUS / "dev.spacy")}
    path = TRAINING / "bilm.cfg"
    shipped_config("pretrain_mini", path).merge(settings).to_disk(path)


def main() -> None:
    """Check everything, then write the files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("treebank", metavar="DATA/pos/NAME")
    parser.add_argument("--weights", default="", help="a biLM; without one, the treebank trains it")
    parser.add_argument("--optimize", choices=["accuracy", "efficiency"], default="accuracy")
    parser.add_argument("--tokenizer", choices=["treebank", "spacy"], default="treebank")
    parser.add_argument("--max-steps", default="", help="default: by the size of the treebank")
    parser.add_argument("--name", default="", help="of the package; default: by the treebank")
    for name, what in STATED.items():
        parser.add_argument(f"--{name}", required=True, help=what)
    args = parser.parse_args()
    parts, problems = read_parts(args.treebank)
    if problems := [*problems_of_the_call(args), *problems]:
        more = f"\n... and {len(problems) - 20:,} more" if len(problems) > 20 else ""
        sys.exit("\n".join(problems[:20]) + more)
    if not parts["dev"]:
        tenth = max(1, len(parts["train"]) // 10)
        parts["train"], parts["dev"] = parts["train"][:-tenth], parts["train"][-tenth:]
        print(f"No dev part: the last {tenth} sentences of the train part are the dev part")
    for part, sentences in parts.items():
        print(f"{part}: {summary(sentences)}")
    left_out = components_without_data(parts["train"])
    if len(left_out) == len(LAYERS):
        sys.exit(f"{args.treebank}: no component has anything to learn")
    for component in left_out:
        column = COLUMNS[LAYERS[component]]
        print(f"No {component}: too few words have a value of {column}, or all have the same")
    lang = language_class(args.lang)
    if lang != args.lang:
        print(f"The pipeline has the language {lang}, because spacy.blank({args.lang!r}) fails")
    words, accurate = sum(len(s.words) for s in parts["train"]), args.optimize == "accuracy"
    settings: dict[str, dict[str, Any]] = {
        "components": {"elmo": {"weights": args.weights or "training/bilm/model-best.safetensors"}},
        "paths": {"train": str(CORPUS / "train.spacy"), "dev": str(CORPUS / "dev.spacy")},
        "nlp": {"lang": lang},
    }
    if args.tokenizer == "treebank" and any(s.has_text for s in parts["train"]):
        # Punctuation tells the tokenizer where sentences end. Without it, the biLM knows more.
        sentences = is_punctuated(parts["train"])
        left_out += ["senter"] * sentences
        tokenizer = {"@tokenizers": "spacy-elmo.UDPipeTokenizer.v1", "sentences": sentences}
        settings["nlp"]["tokenizer"] = tokenizer
        settings["initialize"] = {"tokenizer": {"path": str(TRAINING / "tokenizer.udpipe")}}
    elif args.tokenizer == "treebank":
        print(
            f"The treebank has no text (# text, SpaceAfter=No), so the tokenizer is spaCy's of {lang}"
        )

    if args.weights and replaces_letters_of_lemmas(args.weights, parts["train"]):
        print(
            "The lemmatizer does not use the spelling of the biLM, because lemmas have letters that it replaces"
        )
        settings["components"]["lemmatizer"] = {"upstream": None}
    # Sentences alone teach `senter` that sentences seldom start, so it also reads more Docs of ten.
    starts = (0, 3, 6) if accurate and "senter" not in left_out else (0,)
    write_corpus(parts, split_anew=args.tokenizer == "spacy", starts=starts, alone=accurate)
    if args.tokenizer == "spacy":
        nlp = spacy.blank(lang)
        for part in ("train", "dev"):
            docs = list(sentence_docs(nlp, parts[part]))
            write_docs(docs, CORPUS / f"sentences-{part}.spacy", split_anew=True)
    TRAINING.mkdir(exist_ok=True)
    treebank = Path(args.treebank).name
    steps = int(args.max_steps or accurate and pipeline_steps(words))
    write_pipeline_config(settings, left_out, accurate=accurate, steps=steps)
    (TRAINING / "bilm.cfg").unlink(missing_ok=True)
    if not args.weights:
        card = {"name": treebank, "licence": args.licence}
        write_bilm_config(parts["train"], {"card": card, "prepare": {"lang": lang}})
    card = {
        "name": args.name or package_name(args.lang, treebank),
        "treebank": treebank,
        "words": words,
        "weights": Path(args.weights).stem,
        **{name: getattr(args, name) for name in STATED},
    }
    srsly.write_json(TRAINING / "card.json", card)


if __name__ == "__main__":
    main()
