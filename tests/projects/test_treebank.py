"""projects/treebank: what is done before and after a training. tests/projects/test_clones.py trains."""

import json
import random
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import spacy
import srsly
from confection import Config
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from spacy.vocab import Vocab

from tests import tiny

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "corpus/sample/pos"
STATED = {"licence": "CC0 1.0", "release": "r2.17", "author": "A. Nother"}


def rows_of(text):
    """The columns of each line of a treebank; None for an empty line."""
    lines = [line for line in text.split("\n") if not line.startswith("#")]
    return [line.split("\t") if line else None for line in lines]


def text_of(rows):
    return "\n".join("\t".join(row) if row else "" for row in rows)


def sample(part="train", count=40):
    """The first sentences of the sample, as rows."""
    return rows_of(
        "\n\n".join((SAMPLE / f"sample-{part}.conllu").read_text("utf8").split("\n\n")[:count])
    )


@pytest.fixture
def project(tmp_path):
    """The project in a folder of its own, and its data folder beside it, with a space in its name."""
    shutil.copytree(ROOT / "projects/treebank", tmp_path / "treebank")
    (tmp_path / "my data/pos").mkdir(parents=True)
    return tmp_path / "treebank"


@pytest.fixture
def prepare(project, monkeypatch):
    """Run the script of the command `prepare` in this process, in the folder of the project."""
    import prepare_treebank

    def run(treebank, **options):
        given = [f"--{name}={value}" for name, value in {"lang": "got", **options}.items()]
        monkeypatch.chdir(project)
        monkeypatch.setattr(sys, "argv", ["prepare", f"../my data/pos/{treebank}", *given])
        prepare_treebank.main()

    return run


def docs(path):
    return list(DocBin().from_disk(path).get_docs(Vocab()))


def test_prepare(project, prepare):
    """Nine sentences with Windows line ends, without lemmas, XPOS, trees and a dev part. The biLM has more text."""
    rows = [
        row and [*row[:2], "_", row[3], "_", row[5], "_", "_", "_", "_"] for row in sample(count=9)
    ]
    rows = [row and [row[0], row[1].replace("bridge", "bri\u0301dge"), *row[2:]] for row in rows]
    for part in ("train", "test"):
        path = project.parent / f"my data/pos/tiny-{part}.conllu"
        path.write_bytes(text_of(rows).replace("\n", "\r\n").encode())
    (project / "text").mkdir(parents=True)
    (project / "text/more.txt").write_text(" ".join(f"word{i}" for i in range(600)))
    prepare("tiny", **STATED)
    pipeline, bilm = (
        Config().from_disk(project / f"training/{name}.cfg") for name in ("pipeline", "bilm")
    )
    # Sentences come from the senter, because there is no tokenizer that finds them. `tok2vec` reads them.
    kept = ["elmo", "senter", "tok2vec", "morphologizer", "conventions"]
    assert pipeline["nlp"]["pipeline"] == kept and sorted(pipeline["components"]) == sorted(kept)
    # The sample's words are apart and it has no `# text`, so no tokenizer can be learned.
    assert "tokenizer" not in pipeline["nlp"] and pipeline["nlp"]["lang"] == "xx"
    train, dev = docs(project / "corpus/train.spacy"), docs(project / "corpus/dev.spacy")
    words = [row[1] for row in rows if row]
    last = words.index(dev[0][0].text, len(words) - len(dev[0]))
    assert [token.text for token in dev[0]] == words[last:] and len(dev) == 1
    assert {doc.has_unknown_spaces for doc in [*train, *dev]} == {True}
    assert [len(list(doc.sents)) for doc in train] == [8, 5, 2, *[1] * 8]
    # The biLM reads each word once.
    (text,) = [docs(project / "text/treebank.spacy")]
    assert [token.text for doc in text for token in doc] == words[:last]
    types = len(set(words[:last])) + 600
    assert bilm["training"]["vocab_size"] == types // 2
    card = srsly.read_json(project / "training/card.json")
    assert card.items() >= {"words": last, "lang": "got", "name": "tiny_elmo", **STATED}.items()


@pytest.mark.parametrize("letter, upstream", [("e", None), ("ø", "elmo")])
def test_lemmas_in_another_spelling_than_the_biLM(project, prepare, letter, upstream):
    """The biLM has no "e", which most lemmas have, or no "ø", which no lemma has."""
    for part in ("train", "test"):
        path = project.parent / f"my data/pos/tiny-{part}.conllu"
        path.write_text(text_of(sample(count=9)))
    weights = tiny.save(project / "tiny.safetensors", replace=((letter, "a"),))
    prepare("tiny", weights=weights, **STATED)
    config = Config().from_disk(project / "training/pipeline.cfg", interpolate=False)
    assert config["components"]["lemmatizer"]["upstream"] == upstream


def test_docs_of_sentences_have_the_words_of_the_tokenizer():
    """`****` is one word of the treebank and four of the tokenizer. One sentence starts there, not four."""
    from prepare_treebank import sentence_docs
    from read_conllu import Sentence

    def sentence(text, *comments):
        return Sentence([*comments, f"# text = {text}"], [])

    sentences = [sentence("**** News!", "# newdoc id = a"), sentence("It rains.")]
    sentences += [sentence("Go", "# newpar"), sentence("...")]
    found = list(sentence_docs(spacy.blank("en"), sentences))
    assert [word.text for word in found[0]][:5] == ["*", "*", "*", "*", "News"]
    paragraphs = [["**** News!", "It rains."], ["Go", "..."]]
    alone = [["**** News!"], ["It rains."], ["Go"], ["..."]]
    together = [text for paragraph in paragraphs for text in paragraph]
    unmarked, lines = ["**** News", "It rains"], ["Go\n", "..."]
    expected = [*paragraphs, *paragraphs, unmarked, together, *alone, lines]
    assert [[sent.text for sent in doc.sents] for doc in found] == expected


def test_nothing_is_written_before_everything_was_found(project, prepare):
    """A wrong treebank, no licence, a broken line, an unknown variable: the config of before is still there."""
    pos = project.parent / "my data/pos"
    for name, text in {
        "good": text_of(sample()),
        "bad": text_of(sample()).replace("\tNOUN\t", "\tN\t"),
    }.items():
        for part in ("train", "test"):
            (pos / f"{name}-{part}.conllu").write_text(text)
    (project / "training").mkdir()
    (project / "training/pipeline.cfg").write_text("mine")
    for treebank, options, expected in (
        ("goud", STATED, "good"),
        ("good", {**STATED, "licence": ""}, "licence"),
        ("bad", STATED, "bad-train.conllu, line 2"),
    ):
        with pytest.raises(SystemExit, match=expected):
            prepare(treebank, **options)
    stated = {"data": "../my data", "treebank": "good", "lang": "got", **STATED}
    command = [sys.executable, "-m", "spacy", "project", "run", "prepare", "."]
    for name, value in {**stated, "smal_max_steps": "200"}.items():
        command += [f"--vars.{name}", value]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True)
    assert done.returncode == 1 and "smal_max_steps" in done.stderr
    assert (project / "training/pipeline.cfg").read_text() == "mine"
    assert not list((project / "corpus").rglob("*.*"))


def test_missing_annotation_stays_missing(tmp_path):
    """Every second sentence without heads, every third without XPOS, every fifth word without UPOS, every seventh
    without a lemma, and all with features: each component gets what the columns have, and `_` is no annotation."""
    from prepare_treebank import make_docs
    from read_conllu import read_conllu

    rows, sentence, word = sample(), 0, 0
    for row in rows:
        if row is None:
            sentence += 1
            continue
        word += 1
        row[6:8] = ["_", "_"] if sentence % 2 else row[6:8]
        row[4] = "_" if sentence % 3 == 0 else row[4]
        row[3] = "_" if word % 5 == 0 else row[3]
        row[2] = "_" if word % 7 == 0 else row[2]
    path = tmp_path / "a.conllu"
    path.write_text(text_of(rows))
    sentences, _, problems = read_conllu(path)
    assert not problems and len(sentences) == 40
    made = list(make_docs(sentences, together=10))
    assert [len(list(doc.sents)) for doc in made] == [10] * 4
    expected = {tuple(row[1] for row in s.words): s for s in sentences}
    for doc in made:
        example = Example(Doc(doc.vocab, words=[token.text for token in doc]), doc)
        heads, labels = example.get_aligned_parse()
        columns = [row for sent in doc.sents for row in expected[tuple(t.text for t in sent)].words]
        for token, row, label in zip(doc, columns, labels, strict=True):
            empty = {number for number in (2, 3, 4, 6) if row[number] == "_"}
            assert (6 in empty) == (not token.has_head()) == (label == "")
            assert token.tag_ == ("" if 4 in empty else row[4])
            assert token.lemma_ == ("" if 2 in empty else row[2])
            assert token.pos_ == ("" if 3 in empty else row[3])
            # A part of speech is a part of each analysis.
            assert token.has_morph() == (3 not in empty)
            if 6 not in empty:
                above = token.i if row[6] == "0" else token.i + int(row[6]) - int(row[0])
                assert (token.head.i, label) == (above, "ROOT" if row[6] == "0" else row[7])


def test_components_without_data(tmp_path):
    """Features without parts of speech are no analyses."""
    from prepare_treebank import components_without_data
    from read_conllu import read_conllu

    path = tmp_path / "a.conllu"
    for emptied, expected in (
        ([], []),
        ([2], ["lemmatizer"]),
        ([4], ["tagger"]),
        ([6, 7], ["parser"]),
        ([3], ["morphologizer"]),
        ([3, 5], ["morphologizer"]),
        ([2, 3, 4, 5, 6, 7], ["tagger", "morphologizer", "lemmatizer", "parser"]),
    ):
        rows = sample()
        for row in filter(None, rows):
            for column in emptied:
                row[column] = "_"
        path.write_text(text_of(rows))
        assert components_without_data(read_conllu(path)[0]) == expected
    # As in Faroese: lemmas of punctuation only.
    marks = [row and [*row[:2], row[2] if row[3] == "PUNCT" else "_", *row[3:]] for row in sample()]
    path.write_text(text_of(marks))
    assert components_without_data(read_conllu(path)[0]) == ["lemmatizer"]
    for share, expected in ((0.03, ["tagger"]), (0.1, [])):
        rows = sample()
        words = [row for row in rows if row and row[3] != "PUNCT"]
        for row in words[int(share * len(words)) :]:
            row[4] = "_"
        path.write_text(text_of(rows))
        assert components_without_data(read_conllu(path)[0]) == expected
    one_tag = [row and [*row[:4], "T", *row[5:]] for row in sample()]
    path.write_text(text_of(one_tag))
    assert components_without_data(read_conllu(path)[0]) == ["tagger"]


def test_package_names():
    """Those of two treebanks or languages differ, and are names of modules."""
    from prepare_treebank import package_name

    treebanks = {
        "got_proiel-ud": "got",
        "la_proiel-ud": "la",
        "la_llct-ud": "la",
        "sme_giella-ud": "se",
    }
    names = {f"{lang}_{package_name(lang, treebank)}" for treebank, lang in treebanks.items()}
    assert names == {"got_proiel_elmo", "la_proiel_elmo", "la_llct_elmo", "se_sme_giella_elmo"}


def test_rounded_weights(tmp_path):
    """Weights have the digits of float16 in the biLM and of bfloat16 elsewhere. The saved pipeline predicts the same
    bits."""
    from save_pipeline import round_weights

    weights = tiny.save(tmp_path / "tiny.safetensors")
    nlp = spacy.blank("xx")
    nlp.add_pipe("elmo", config={"weights": str(weights), "frozen": False})
    listener = {"@architectures": "spacy-elmo.ElmoListener.v1", "upstream": "elmo"}
    tagger = {"@architectures": "spacy.Tagger.v2", "tok2vec": listener}
    nlp.add_pipe("tagger", config={"model": tagger})
    parser = {
        "@architectures": "spacy.TransitionBasedParser.v2",
        "state_type": "parser",
        "tok2vec": listener,
    }
    parser |= {
        "extra_state_tokens": False,
        "hidden_width": 8,
        "maxout_pieces": 2,
        "use_upper": False,
    }
    nlp.add_pipe("parser", config={"model": parser, "min_action_freq": 1})
    words = ["a", "cat", "sat"]
    gold = Doc(
        nlp.vocab, words=words, tags=["D", "N", "V"], heads=[1, 2, 2], deps=["det", "nsubj", "ROOT"]
    )
    optimizer = nlp.initialize(lambda: [Example(nlp.make_doc(gold.text), gold)])
    for _ in range(5):
        nlp.update([Example(nlp.make_doc(gold.text), gold)], sgd=optimizer)
    elmo = nlp.get_pipe("elmo").model
    before, size = nlp("a cat sat")._.elmo, len(elmo.to_bytes())
    round_weights(nlp)
    heads = [
        node.get_param(name)
        for _, component in nlp.pipeline
        for node in component.model.walk()
        for name in node.param_names
        if node.has_param(name)
    ]
    bilm = [
        p.detach().numpy() for node in elmo.walk() for s in node.shims for p in s.bilm.parameters()
    ]
    assert len(heads) > 5 and len(bilm) > 15
    for array in heads:
        assert not (array.view("uint32") & 0xFFFF).any()
    for array in bilm:
        np.testing.assert_array_equal(array, array.astype("float16").astype("float32"))
    after = nlp("a cat sat")
    np.testing.assert_allclose(after._.elmo, before, atol=0.01)
    assert not np.array_equal(after._.elmo, before) and len(elmo.to_bytes()) < 0.7 * size
    nlp.to_disk(tmp_path / "saved")
    loaded = spacy.load(tmp_path / "saved")("a cat sat")
    np.testing.assert_array_equal(loaded._.elmo, after._.elmo)
    assert (
        loaded.to_array(["TAG", "HEAD", "DEP"]).tolist()
        == after.to_array(["TAG", "HEAD", "DEP"]).tolist()
    )


def test_plain_text(tmp_path):
    """One space between sentences, an empty line before documents and paragraphs, and no other change."""
    from read_conllu import read_conllu
    from score_pipeline import plain_text

    path = tmp_path / "a.conllu"
    word = "1\t{}\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No\n\n"
    heads = ["# newdoc id = x\n", "", "# newpar\n", "# newdoc\n# newpar id = p\n", ""]
    path.write_text(
        "".join(head + word.format(text) for head, text in zip(heads, "abcde", strict=True))
    )
    assert plain_text(read_conllu(path)[0]) == "a b\n\nc\n\nd e\n"


def test_scores_over_annotated_words(tmp_path):
    """Random mistakes and random gaps, with the words of the treebank: a count by hand gives the same."""
    from read_conllu import read_conllu
    from score_pipeline import COLUMNS, over_annotated, udeval

    draw = random.Random(0)
    gold, predicted = sample(), sample()
    for row in filter(None, gold):
        for column in (2, 3, 4):
            row[column] = "_" if draw.random() < 0.3 else row[column]
        if draw.random() < 0.3:
            row[6:8] = ["_", "_"]
    for row in filter(None, predicted):
        row[2] = "x" if draw.random() < 0.3 else row[2]
        row[3] = "X" if draw.random() < 0.3 else row[3]
        row[4] = "Y" if draw.random() < 0.3 else row[4]
        row[7] = "other" if draw.random() < 0.3 and row[6] != "0" else row[7]
    paths = [tmp_path / name for name in ("a.conllu", "b.conllu")]
    for path, rows in zip(paths, (gold, predicted), strict=True):
        path.write_text(text_of(rows))
    sentences = [read_conllu(path)[0] for path in paths]
    counts = udeval(*sentences, tmp_path)
    found = over_annotated(*sentences, counts, tmp_path)
    right, annotated = Counter(), Counter()
    for row, guess in zip(filter(None, gold), filter(None, predicted), strict=True):
        for name, (_, column) in COLUMNS.items():
            if column != 5 and row[column] != "_":
                annotated[name] += 1
                right[name] += row[column] == guess[column] and (
                    name != "LAS" or row[6] == guess[6]
                )
    assert set(found) == {"UPOS", "XPOS", "lemmas", "UAS", "LAS"}
    for name, score in found.items():
        assert score == round(100 * right[name] / annotated[name], 2)
    # Over all words: a missing lemma is right, a missing tag is wrong.
    total = sum(map(bool, gold))
    assert counts["Lemmas"].correct == right["lemmas"] + total - annotated["lemmas"]
    assert counts["XPOS"].correct == right["XPOS"] and counts["XPOS"].gold == total
    # Nothing is missing: nothing more to show.
    full = read_conllu(SAMPLE / "sample-dev.conllu")[0]
    assert over_annotated(full, full, udeval(full, full, tmp_path), tmp_path) == {}


def test_scores_over_annotated_words_of_other_words(tmp_path):
    """Plain text: "ab c" was split as "a", "b", "c" and has three words instead of two; one lemma of two is there."""
    from read_conllu import read_conllu
    from score_pipeline import over_annotated, udeval

    paths = [tmp_path / name for name in ("a.conllu", "b.conllu")]
    paths[0].write_text("1\tab\t_\tX\t_\t_\t0\troot\t_\t_\n2\tc\tc\tX\t_\t_\t1\tdep\t_\t_\n")
    rows = [f"{i}\t{w}\t{w}\tX\t_\t_\t{i - 1}\tdep\t_\t_\n" for i, w in enumerate("abc", 1)]
    paths[1].write_text("".join(rows))
    gold, predicted = (read_conllu(path)[0] for path in paths)
    counts = udeval(gold, predicted, tmp_path)
    assert counts["Words"][:3] == (1, 2, 3)
    # "c" is right; the treebank has one lemma, and three words were found.
    assert over_annotated(gold, predicted, counts, tmp_path) == {"lemmas": 50.0}


def test_meta_of_a_package():
    """Licences of the treebank, of the biLM and of other data; what forbids commercial use comes first."""
    from package_pipeline import package_meta

    card = {"lang": "got", "name": "x_elmo", "treebank": "got_x-ud", "words": 9, **STATED}
    meta = {
        "lang": "xx",
        "license": "CC BY-SA 4.0",
        "sources": [{"name": "biLM b"}],
        "pipeline": ["elmo", "tagger"],
    }
    scores = {"gold words": {"XPOS": 91.5}}
    made = package_meta(meta, card, scores, {"names": "MIT"})
    assert made["license"] == "CC BY-SA 4.0, CC0 1.0, MIT" and made["performance"] == scores
    assert (made["lang"], made["name"], made["author"]) == ("got", "x_elmo", "A. Nother")
    assert [source["name"] for source in made["sources"]] == ["biLM b", "got_x-ud (r2.17)", "names"]
    for licence, forbidden in {
        "CC BY-NC-SA 3.0": True, "CC BY-NC 4.0": True, "non-commercial use": True, "CC BY-SA 4.0": False,
        "MIT": False, "INCLUDED": False,
    }.items():  # fmt: skip
        made = package_meta(meta, {**card, "licence": licence}, scores, {})
        assert made["description"].startswith("No commercial use") == forbidden
    assert json.dumps(made)
