"""Write corpus/sample from the grammar in scripts/sample_grammar. Every run writes the same bytes.

    python scripts/make_sample.py [OUT_DIR]

scripts/sample_grammar/README.md explains the notation of the grammar.
"""

import random
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from sample_treebank import conllu

GRAMMAR = Path(__file__).parent / "sample_grammar"
SAMPLE = Path(__file__).parent.parent / "corpus" / "sample"
SEED = 1
RAW, TRAIN, DEV, TEST = 5000, 200, 50, 250  # sentences
TREEBANK = {"train": 200, "dev": 50, "test": 50}
SLOT = re.compile(r"\{(@?)([\w.]+)\}")

Rules = dict[str, list[str]]
# A text and its entity type, which is empty outside entities; or a word and its tag.
Tagged = tuple[str, str]


def read_rules(path: Path) -> Rules:
    """Read the rules of a grammar file. The result maps the name of a rule to its phrases."""
    rules: Rules = {}
    name = None
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("[") and line.endswith("]"):
            name = line[1:-1]
            if name in rules:
                raise ValueError(f"{path}:{number}: the rule [{name}] occurs twice; join both")
            rules[name] = []
        elif line and not line.startswith("#"):
            if name is None:
                raise ValueError(
                    f"{path}:{number}: the phrase {line!r} is before the first [rule]; move it into a rule"
                )
            rules[name].append(line)
    return rules


@dataclass
class Expander:
    """Generator of text, which draws phrases from rules and fills their slots."""

    rules: Rules
    rng: random.Random
    bags: Rules = field(default_factory=dict)
    bound: dict[str, str] = field(default_factory=dict)
    written: set[str] = field(default_factory=set)

    def draw(self, name: str) -> str:
        """Draw a phrase of a rule, without filling its slots. All phrases are drawn once before one is drawn again."""
        if not self.bags.get(name):
            if name not in self.rules:
                raise ValueError(
                    f"no rule [{name}] for {{{name}}}; the rules are {sorted(self.rules)}"
                )
            self.bags[name] = self.rng.sample(self.rules[name], len(self.rules[name]))
        return self.bags[name].pop()

    def pieces(self, text: str, entity: str = "") -> Iterator[Tagged]:
        """Fill the slots of a text, and split the text where the entity type changes."""
        start = 0
        for slot in SLOT.finditer(text):
            yield text[start : slot.start()], entity
            yield from self._fill(slot[2], bool(slot[1]), entity)
            start = slot.end()
        yield text[start:], entity

    def _fill(self, name: str, bind: bool, entity: str) -> Iterator[Tagged]:
        kind = name.split(".")[0]
        # The outermost entity counts: a place inside the name of a university is part of the university.
        entity = entity or (kind if kind.isupper() else "")
        if not bind:
            yield from self.pieces(self.draw(name), entity)
            return
        if name not in self.bound:
            self.bound[name] = "".join(text for text, _ in self.pieces(self.draw(name)))
        yield self.bound[name], entity

    def sentence(self, name: str) -> list[Tagged]:
        """Generate a sentence from a rule that was not generated before."""
        for _ in range(1000):
            pieces = [piece for piece in self.pieces(self.draw(name)) if piece[0]]
            text = "".join(part for part, _ in pieces)
            if text not in self.written:
                self.written.add(text)
                return pieces
        raise ValueError(f"the rule [{name}] generates no new sentence; add phrases to it")


def capitalised(text: str) -> str:
    """Return the text with its first letter in upper case, even if quotation marks come before it."""
    return re.sub(r"[a-zA-Z]", lambda letter: letter[0].upper(), text, count=1)


def document(topic: Expander) -> list[str]:
    """Generate the paragraphs of one document, each a list of sentences."""
    topic.bound.clear()
    names = ["open"] + ["body"] * topic.rng.randint(6, 16) + ["close"]
    sentences = [capitalised("".join(text for text, _ in topic.sentence(name))) for name in names]
    paragraphs = []
    while sentences:
        size = topic.rng.randint(3, 6)
        paragraphs.append(sentences[:size])
        sentences = sentences[size:]
    return paragraphs


def raw_text(rng: random.Random, sentences: int) -> str:
    """Generate at least `sentences` sentences of all topics. A line is a paragraph; an empty line ends a document."""
    words = read_rules(GRAMMAR / "raw" / "words.txt")
    paths = sorted(path for path in (GRAMMAR / "raw").glob("*.txt") if path.stem != "words")
    topics = [Expander({**words, **read_rules(path)}, rng) for path in paths]
    documents = []
    while sentences > 0:
        paragraphs = document(rng.choice(topics))
        documents.append("\n".join(" ".join(paragraph) for paragraph in paragraphs) + "\n")
        sentences -= sum(len(paragraph) for paragraph in paragraphs)
    return "\n".join(documents)


def tagged(pieces: list[Tagged]) -> list[Tagged]:
    """Return the words of a sentence with their IOB2 tags."""
    rows: list[Tagged] = []
    inside = False
    for text, entity in pieces:
        for word in text.split():
            # An article before the name is not part of it.
            if not entity or (word == "the" and not inside):
                rows.append((word, "O"))
            else:
                rows.append((word, ("I-" if inside else "B-") + entity))
                inside = True
        inside = inside and bool(entity)
    return [(capitalised(rows[0][0]), rows[0][1]), *rows[1:]]


def ner_sentences(rng: random.Random, path: Path, count: int) -> list[str]:
    """Generate `count` annotated sentences with a line per token. All sentences of the rule `plain`, which have no
    names, are among them."""
    grammar = Expander(read_rules(path), rng)
    plain = len(grammar.rules["plain"])
    names = ["plain"] * plain + ["sentence"] * (count - plain)
    rng.shuffle(names)
    rows = (tagged(grammar.sentence(name)) for name in names)
    return ["".join(f"{word}\t{tag}\n" for word, tag in sentence) for sentence in rows]


def make_sample(out: Path) -> None:
    """Write the sample in the layout of a data folder: pretrain-en/train-*, {ner,pos}/NAME-{train,dev,test}.*."""
    # Each part has its own generator, so a change of one part does not change the others.
    train_and_dev = ner_sentences(random.Random(SEED), GRAMMAR / "ner_train.txt", TRAIN + DEV)
    test = ner_sentences(random.Random(SEED), GRAMMAR / "ner_test.txt", TEST)
    texts = {
        "pretrain-en/train-00.txt": raw_text(random.Random(SEED), RAW),
        "ner/sample-train.tsv": "\n".join(train_and_dev[:TRAIN]),
        "ner/sample-dev.tsv": "\n".join(train_and_dev[TRAIN:]),
        "ner/sample-test.tsv": "\n".join(test),
    }
    trees = random.Random(SEED)
    for part, count in TREEBANK.items():
        texts[f"pos/sample-{part}.conllu"] = conllu(trees, count)
    for name, text in texts.items():
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        # Written as bytes, so that line ends are the same on every system.
        path.write_bytes(text.encode("utf-8"))


if __name__ == "__main__":
    make_sample(Path(sys.argv[1]) if len(sys.argv) > 1 else SAMPLE)
