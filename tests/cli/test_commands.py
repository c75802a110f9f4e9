"""Every command line: exit code and a fragment of the output. An error changes no file."""

import shlex
import warnings

import pytest

from tests.commands import elmo
from tests.disk import tree

PROBE = "probe word-sense bare.safetensors"
RUN = "pretrain run.cfg out --paths.raw_text raw.txt"
TABLE = [
    ("info", 0, "default for English en_base_v2"),
    ("info en_mini_v4", 0, "size 19.3 MB, 3,002,064 parameters without the head"),
    ("info en_mini_v4", 0, "origin pretrained by spacy-elmo, 5,336 steps perplexity 84.9877, on held-out text"),
    ("info fi.safetensors", 0, "head none (evaluate and score need a head) origin not stated language fi"),
    ("info w.safetensors", 0, r"licence \x1b]0;o\x07\u202e"),
    ("info nowhere", 1, "Cannot find the weights 'nowhere': there is no file"),
    ("info bilm", 1, "`python -m spacy elmo convert auto bilm ours.safetensors`"),
    ("init-config new.cfg --pipeline tagger", 0, "python -m spacy train new.cfg --paths.train train.spacy"),
    ("init-config 'my own.cfg' -w fi.safetensors", 0, "python -m spacy assemble 'my own.cfg' pipeline"),
    ("init-config new.cfg -w given.safetensors", 0, "another tokenizer (text as given)"),
    ("init-config new.cfg -w none.safetensors", 1, "does not record the language of its weights. Set lang (`--lang`)"),
    ("init-config new.cfg -w none.safetensors --lang qq", 1, "cannot create a pipeline for the language 'qq'"),
    ("init-config new.cfg -p nerr", 1, "spaCy has no component 'nerr' for the language 'en'"),
    ("init-config new.cfg -p entity_linker", 1, "--from entity_linker_elmo"),
    ("init-config new.cfg -p ner --vectors floret", 1, "--vectors adds static vectors"),
    ("init-config new.cfg --from ner_elmo --lang de", 1, "--nlp.lang de"),
    ("init-config new.cfg --from ner", 1, "Choose one of entity_linker_elmo,"),
    ("init-config new.cfg --base nlp/config.cfg --lang de", 1, "--base keeps"),
    ("init-config new.cfg --base empty.txt", 1, "--base empty.txt: the config has no `lang` in a section [nlp]"),
    ("init-config run.cfg", 1, "run.cfg already exists. To overwrite it, set force (`--force`)"),
    ("annotate no-elmo text.txt out.conllu", 0, "out.conllu: 2 sentences in 1 new files"),
    ("annotate no-elmo 'b*.txt' out", 0, "out: 7 sentences in 4 new files"),
    ("annotate nowhere text.txt out.conllu", 1, "Cannot find 'nowhere'"),
    ("annotate no-elmo text.txt t.conllu", 1, "t.conllu already exists. To overwrite it, set force (`--force`)"),
    ("annotate no-elmo a.jsonl out.conllu", 1, "a.jsonl: only plain text and CoNLL-U (.conllu) can be annotated"),
    ("annotate no-elmo latin1.txt out.conllu", 1, "latin1.txt, line 2 is not UTF-8"),
    ("annotate no-elmo twice out", 1, "twice/a.conllu and twice/a.txt would both become out/a.conllu. Rename one"),
    ("embed lm.safetensors text.txt out", 0, "Vectors: out"),
    ("embed nowhere text.txt out", 1, "Cannot find 'nowhere'"),
    ("embed no-elmo text.txt out", 1, "The pipeline has no elmo component"),
    ("embed given.safetensors text.txt out", 0, "another tokenizer (text as given)"),
    ("embed nlp text.txt out --lang en", 1, "can only be set for a weights file"),
    ("embed none.safetensors text.txt out", 1, "does not record the language of its weights. Set lang"),
    ("search index lm.safetensors boat.txt out", 0, "Index: out, 3 sentences"),
    ("search index lm.safetensors boat.txt mine --force", 1, "mine contains options.json"),
    ("search index lm.safetensors boat.txt bilm", 1, "is not empty. Choose a new folder"),
    ("search index lm.safetensors blank.txt out", 1, "The text 'blank.txt' contains no words"),
    ("search query mine text", 1, "no index in mine"),
    ("prepare run.cfg out --paths.raw_text 'b*.txt' --paths.dev_text a.txt", 0, "Text: b*.txt, files: 4"),
    ("prepare run.cfg out --paths.raw_text raw.txt", 0, "the run, without evaluations 0:00:"),
    ("prepare run.cfg out --paths.raw_text raw.txt --training.vocab_size 100", 0, "vocabulary 9, covers 100.0%"),
    ("prepare run.cfg out --paths.raw_text raw.txt --paths.dev_text a.txt --training.vocab_size 100", 0,
     "the model never learns <UNK>. Unknown words in the held-out text will have a very high perplexity. So that rare"
     " words become <UNK>, set training.vocab_size to 8"),
    ("prepare run.cfg out --paths.raw_text raw.txt --training.max_steps 10000", 0, "training words 356 times"),
    ("prepare a.txt out --paths.raw_text raw.txt", 1, "a.txt is not a valid config file"),
    (RUN, 0, "Weights: out/model-best.safetensors"),
    (f"{RUN} --resume", 0, "Nothing to resume in out. Starting a new run"),
    (f"{RUN} --training.max_step 9", 1, "[training] max_step = 9: unknown setting (do you mean max_steps?)"),
    (f"{RUN} --forse", 1, "This command has no option --forse"),
    (f"{RUN} --training.vocab_size null", 1, "vocab_size = null uses"),
    (f"{RUN} --gpu-id 17", 1, "GPU 17 (`--gpu-id`)"),
    ("pretrain run.cfg out --paths.raw_text 'nowhere/*.txt'", 1, "No text at 'nowhere/*.txt'"),
    ("pretrain run.cfg out", 1, "paths.raw_text is missing"),
    ("pretrain run.cfg out --paths.corpus nowhere", 1, "no prepared corpus in nowhere"),
    ("pretrain none.cfg out", 1, "no config file"),
    ("evaluate lm.safetensors a.txt", 0, "Vocabulary: 7 classes"),
    ("evaluate lm.safetensors blank.txt", 1, "The text contains no sentence"),
    ("evaluate lm.safetensors a.txt -o nowhere/m.json", 1, "nowhere does not exist"),
    ("score lm.safetensors a.txt", 0, "rain unknown unknown sleeps"),
    *[
        (f"{command} {arguments}", 1, fragment)
        for command in ("evaluate", "score")
        for arguments, fragment in (
            ("bare.safetensors a.txt", "no head"),
            ("lm.safetensors a.txt --lang xyz", "cannot create the tokenizer"),
        )
    ],
    ("package lm.safetensors models -n en_tiny_v1 --card card.json --head", 0,
     "python -m spacy elmo pretrain CONFIG OUT --init models/en_tiny_v1_with_head.safetensors"),
    ("package bare.safetensors models -n la_tiny_v1 --lang la --licence MIT", 0, "pip install models/la_tiny"),
    ("package bare.safetensors models -n la_tiny_v1 --licence MIT --head", 1, "The weights have no head"),
    ("package lm.safetensors models -n la_tiny_v1 --card list.json", 1, "must contain a JSON object"),
    *[
        (command, 1, "The text 'empty.txt' is empty")
        for command in (
            "embed lm.safetensors empty.txt out", "search index lm.safetensors empty.txt out",
            "neighbors lm.safetensors empty.txt bank -q bank", "explore lm.safetensors empty.txt --port 0",
            "score lm.safetensors empty.txt", "evaluate lm.safetensors empty.txt",
            "prepare run.cfg out --paths.raw_text empty.txt", f"{PROBE} empty.txt a.jsonl",
        )
    ],
    ("convert bilm-hdf5 bilm out.safetensors", 0, "read bilm/options.json, bilm/lm_weights.hdf5"),
    ("convert auto bilm out.safetensors --lang de", 0, "bilm-hdf5, because there is lm_weights.hdf5"),
    ("convert auto bilm/lm_weights.hdf5 out.safetensors --options o.json", 0, "read o.json, bilm/lm_weights.hdf5"),
    ("convert auto bilm out.safetensors --softmax softmax.h5 --vocabulary words.txt", 0, "softmax.h5, words.txt"),
    ("convert auto bilm out.safetensors --token-vectors vectors.h5 --vocabulary words.txt", 0, "replace the token"),
    ("convert auto many out.safetensors --warm start.txt", 0, "start state: mean over 27 sentences of start.txt"),
    ("convert allennlp allennlp out.safetensors --options o.json", 0, "scalar_mix_0: weights 0, 0, 0"),
    ("convert auto bilm w.safetensors --force", 0, "w.safetensors: "),
    ("convert auto bilm out.safetensors", 0, "The language of the model is not known. Set lang (`--lang`)"),
    ("convert auto bilm w.safetensors", 1, "w.safetensors already exists"),
    ("convert auto damaged.zip w.safetensors --force", 1, "damaged.zip/m/w.hdf5 is not a readable HDF5 file"),
    ("export bilm-hdf5 w.safetensors out", 0, "out/weights.hdf5"),
    ("export allennlp w.safetensors out", 0, "out/weights.th"),
    ("export onnx w.safetensors out.onnx", 0, "out.onnx: "),
    ("export bilm-hdf5 skipless.safetensors out", 0, "but AllenNLP cannot: max_characters = 12"),
    ("export allennlp skipless.safetensors out", 1, "AllenNLP does not support this biLM"),
    ("export bilm-hdf5 w.safetensors mine --force", 0, "mine/options.json"),
    ("export onnx w.safetensors mine --force", 1, "mine is a folder"),
    ("export onnx w.safetensors words.txt", 1, "words.txt already exists"),
    ("export bilm-hdf5 w.safetensors nowhere/out", 1, "No such file or directory: 'nowhere/out'"),
    ("export bert w.safetensors out", 1, "'bert' is unknown. Use one of bilm-hdf5, allennlp, onnx"),
    ("download", 0, "many-langs-zh"),
    ("download en-smal", 1, "no public model 'en-smal'. Similar names are en-small"),
    ("explore no-elmo a.txt --port 0", 1, "The pipeline has no elmo component"),
    ("explore lm.safetensors blank.txt --port 0", 1, "contains no words"),
    ("layers one/best", 0, "tagger mix 1.000 0.333 0.333 0.333"),
    ("layers one/best two/best", 0, "one tagger mix 1.000 0.333 0.333 0.333 two tagger top 1.000 0.000 0.000 1.000"),
    ("layers custom --code code.py", 0, "tagger top"),
    ("layers nlp", 1, "No component of the pipeline uses the layers"),
    ("layers one/best -o out.pdf", 1, "the file name must end in .png or .json"),
    ("neighbors en_mini_v4 bank.txt bank -n 1 -q 'I borrowed money from the bank.'", 0,
     "layer 0 1.00 He sat on the muddy BANK of the river."),
    ("neighbors lm.safetensors train-1.jsonl bank -o out.html", 0, "Occurrences in the text: 2, annotated with 2"),
    ("neighbors lm.safetensors bank.txt bank", 1, "Nothing to do. Use --query SENTENCE"),
    (f"{PROBE} train-*.jsonl a.jsonl b.jsonl", 0, "Layer 1 100.0 0.0 66.7 Layer 2 100.0 0.0 66.7"),
    (f"{PROBE} train-*.jsonl a.jsonl b.jsonl", 0, "Words 1 1 2 that occur in TRAIN 1 0 1 with several senses 1 0 1"),
    (f"{PROBE} train-1.jsonl a.jsonl b.jsonl --first-senses index.sense", 0, "WordNet's first sense 0.0 100.0 50.0"),
    (f"{PROBE} plain.jsonl a.jsonl", 1, "No word of the training text has a sense"),
    (f"{PROBE} train-1.jsonl plain.jsonl", 1, "plain.jsonl: no word has a sense"),
    ("probe part-of-speech nlp t.conllu t.conllu", 0, "Accuracy in % 4 words, 4 tags"),
    ("probe part-of-speech nlp t.conllu untagged.conllu", 1, "'cat' has no tag"),
]  # fmt: skip


def test_another_language_is_one_warning(folder):
    """The tokenizer is another one, too, as follows from the language."""
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        code, output = elmo("embed", "lm.safetensors", "text.txt", "out", "--lang", "la")
    assert code == 0 and output.count("language is 'la'") == 1 and "tokenizer" not in output


@pytest.mark.parametrize("line, code, fragment", TABLE)
def test_command(folder, line, code, fragment):
    before = tree(folder)
    actual, output = elmo(*shlex.split(line))
    assert (actual, fragment in output) == (code, True), output
    if code:
        assert tree(folder) == before
