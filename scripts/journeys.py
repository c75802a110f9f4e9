"""Print what a prediction, frozen and unfrozen training steps and a pretraining of two steps run of the core, which is
all but `converters`, `lab` and `cli`, at today's and earlier paths: files, calls between files, lines of functions.
"""

import ast
import sys
import tempfile
from pathlib import Path

import spacy
from spacy.training import Example

import spacy_elmo

HOME = Path(spacy_elmo.__file__).parent
OTHERS = "converters lab cli analysis corpora embedding explore search download.py models.py"
NER = {"model": {"tok2vec": {"@architectures": "spacy-elmo.ElmoListener.v1"}}}
TEXT = {"training.max_steps": 2, "paths.raw_text": f"{HOME.parent}/corpus/sample/pretrain-en"}
owner = {}  # the innermost function of each line, as path and first line
for path in HOME.rglob("*.py"):
    is_core = {*OTHERS.split()}.isdisjoint(path.relative_to(HOME).parts)
    for node in ast.walk(ast.parse(path.read_text("utf8"))):
        if is_core and isinstance(node, ast.FunctionDef):
            start = min(part.lineno for part in (node, *node.decorator_list))
            owner |= {(path, n): (f"{path}", start) for n in range(start, node.end_lineno + 1)}
functions, together = {*owner.values()}, set()


def trace(name, journey, argument):
    def record(frame, event, _):
        function = path, _ = frame.f_code.co_filename, frame.f_code.co_firstlineno
        if event == "call" and function in functions:
            ran.add(function)
            while (frame := frame.f_back) and "/spacy_elmo/" not in frame.f_code.co_filename:
                pass  # another package
            calls.add((frame.f_code.co_filename if frame else path, path))

    ran, calls = set(), set()
    sys.setprofile(record)
    journey(argument)
    sys.setprofile(None)
    together.update(ran)
    lines, so_far = (sum(f in some for f in owner.values()) for some in (ran, together))
    print(f"{name}: {len(dict(ran))} files, {sum(a != b for a, b in calls)} calls, {lines} lines")
    print(f"    so far {so_far} of {len(owner)} lines, {so_far / len(owner):.1%}")


(nlp := spacy.blank("en")).add_pipe("elmo")
nlp("It rained.")
trace("prediction", nlp, "Anna met Bob in Paris.")
for frozen in (True, False):
    (nlp := spacy.blank("en")).add_pipe("elmo", config={"frozen": frozen})
    nlp.add_pipe("ner", config=NER).add_label("PER")
    nlp.initialize()
    for order, text in (("first", "It rained."), ("second", "Bob left.")):
        batch = [Example.from_dict(nlp.make_doc(text), {"entities": []})]
        trace(f"{order} step, frozen = {frozen}", nlp.update, batch)
with tempfile.TemporaryDirectory() as out:
    run = spacy_elmo.pretrain(HOME.parent / "configs/pretrain_smoke.cfg", out, overrides=TEXT)
    trace("pretraining of two steps", list, run)
