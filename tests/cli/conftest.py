"""A folder with what the commands read: weights, pipelines, texts, and models of other programs."""

import json
import shutil

import pytest
import spacy
import torch

from spacy_elmo.bilm.head import Head
from spacy_elmo.bilm.weights import Weights
from tests import pipelines, tiny
from tests.converters import foreign, foreign_allennlp, foreign_many_langs
from tests.converters.test_untrusted_files import write_zip

RIVER, MONEY, SKY = "bank%1:17:01::", "bank%1:14:00::", "sky%1:17:00::"
SENSES = {
    "train-1": [
        (["the", "river", "bank"], [None, None, RIVER]),
        (["money", "in", "the", "bank"], [None, None, None, MONEY]),
    ],
    "train-2": [(["my", "bank", "pays"], [None, MONEY, None])],
    # The sentence of RIVER again, so that every layer but the first must find it; and an entry that is new.
    "a": [(["the", "river", "bank"], [None, None, RIVER])],
    "b": [(["the", "sky"], [None, SKY])],
    "plain": [(["a"], [None])],
}
CODE = "from spacy.language import Language\n@Language.component('mine')\ndef f(doc):\n    return doc\n"
TEXTS = {
    "text.txt": "The bank in Rome isn't old.\n\nShe sat on it.\n",
    "a.txt": "the cat sleeps . the cat\n\nrain  sleeps .\n",
    "boat.txt": "The boat lay on the river bank. It was old!\n\nThe bank gave him money.\n",
    "bank.txt": "He sat on the muddy bank of the river.\nShe asked the bank for a loan.\nNothing.\n",
    "bird.txt": "Café 鳥 .\n",
    "start.txt": "a cat sat .\nit rained ,\n\nand so on .\n" * 9,
    "raw.txt": ("the dog sees the cat .\nthe owl sees the cat .\n" * 5 + "\n") * 40,
    "blank.txt": " \n",
    "twice/a.txt": "one",
    "twice/a.conllu": "",
    "empty.txt": "",
    "latin1.txt": b"fine\nna\xefve\n",
    "words.txt": "\n".join(tiny.VOCABULARY),
    "index.sense": f"{SKY} 09436708 1 18\n{MONEY} 08420278 1 20\n",
    "mine/options.json": "mine",
    "code.py": CODE,
    "card.json": '{"licence": "CC0 1.0", "sources": ["a book"]}',
    "list.json": "[]",
    "run.cfg": """
[prepare]
tokenized = true
[model]
dim = 8
projection = 4
char_dim = 4
filters = [[1, 4], [3, 4]]
highways = 1
[training]
max_steps = 6
vocab_size = 6
negatives = 4
max_length = 7
batch_tokens = 64
log_every = 2
eval_every = 3
save_every = 3
[card]
licence = "CC0"
""",
}


@pytest.fixture(scope="session")
def template(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    for name, text in TEXTS.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    for name, sentences in SENSES.items():
        rows = (json.dumps({"tokens": words, "sense": keys}) for words, keys in sentences)
        (folder / f"{name}.jsonl").write_text("\n".join(rows))
    rows = "1\t{}\t_\t{}\t_\t_\t_\t_\t_\t_\n\n"
    tags = {"a": "DET", "cat": "NOUN", "sat": "VERB", ".": "PUNCT"}
    (folder / "t.conllu").write_text("".join(rows.format(*pair) for pair in tags.items()))
    (folder / "untagged.conllu").write_text(rows.format("cat", "_"))

    vocabulary = ["cat", "</S>", "the", "<UNK>", "sleeps", ".", "<S>"]
    card = {"language": "en", "tokenizer": "spacy.blank('en')"}
    torch.manual_seed(0)
    head = Head(len(vocabulary), 5)
    lm = Weights.from_bilm(tiny.bilm(tiny.config()), head, vocabulary=vocabulary, card=card)
    lm.save(folder / "lm.safetensors")
    lm.without_head().save(folder / "bare.safetensors")
    lm.card["tokenizer"] = "text as given"
    lm.save(folder / "given.safetensors")
    lm.tensors["head.bias"] = torch.tensor([[1e30]] + [[0.0]] * 6)
    lm.save(folder / "diverged.safetensors")
    tiny.save(folder / "none.safetensors", {})
    tiny.save(folder / "fi.safetensors", {"language": "fi", "steps": "many"})
    tiny.save(
        folder / "w.safetensors",
        {"language": "en", "licence": "\x1b]0;o\x07\u202e"},
        max_characters=50,
    )
    tiny.save(folder / "skipless.safetensors", skip=False)

    pipelines.blank(folder / "lm.safetensors").to_disk(folder / "nlp")
    spacy.blank("en").to_disk(folder / "no-elmo")
    for name, choice in (("one", "mix"), ("two", "top")):
        nlp = pipelines.blank(folder / "lm.safetensors")
        pipelines.add_tagger(nlp, layers=choice)
        nlp.initialize(lambda nlp=nlp: pipelines.examples(nlp))
        (folder / name).mkdir()
        nlp.to_disk(folder / name / "best")
    spacy.util.import_file("python_code", folder / "code.py")
    nlp.add_pipe("mine")
    nlp.to_disk(folder / "custom")

    table = torch.linspace(-1, 1, 40).view(8, 5).numpy()
    foreign.write_model(folder / "bilm", tiny.bilm(tiny.config()))
    foreign.write_arrays(folder / "softmax.h5", {"softmax/W": table, "softmax/b": table[:, 0]})
    foreign.write_arrays(folder / "vectors.h5", {"embedding": table})
    shutil.copy(folder / "bilm" / "options.json", folder / "o.json")
    (folder / "many").mkdir()
    foreign_many_langs.write_model(folder / "many", foreign_many_langs.options())
    state = foreign_allennlp.tagger_of(tiny.bilm(tiny.config()), [([0.0] * 3, 1.0)])
    foreign_allennlp.write(folder / "allennlp", state, foreign_allennlp.config_of())
    damaged = {"m/options.json": b'{"lstm": {"dim": 0}}', "m/w.hdf5": b""}
    write_zip(folder / "damaged.zip", damaged)
    return folder


@pytest.fixture
def folder(template, tmp_path, monkeypatch):
    """A copy of the folder, which is the current folder."""
    copy = tmp_path / "cli"
    shutil.copytree(template, copy)
    monkeypatch.chdir(copy)
    return copy
