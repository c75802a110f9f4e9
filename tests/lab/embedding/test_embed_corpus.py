"""A run of `embed`: complete, interrupted at any moment, and refused."""

import gc
import itertools
import json
import os
import shutil
from pathlib import Path

import h5py
import pytest
from spacy.tokens import Doc

from spacy_elmo.lab.embedding.embed_corpus import embed, embed_here, embed_shards
from spacy_elmo.lab.embedding.embedder import EmbedOptions
from spacy_elmo.lab.embedding.vectors import open_vectors
from tests import pipelines
from tests.disk import limited_file_size, tree

FORMATS = ["safetensors", "hdf5", "parquet"]


def run(nlp, text, out, **options):
    """Return the numbers of the first items of the shards that were computed."""
    return [shard["first"] for shard in embed_shards(nlp, str(text), out, **options)]


def test_each_shard_is_reported(nlp, text, tmp_path):
    actual = list(embed_shards(nlp, str(text), tmp_path / "out"))
    assert actual == open_vectors(tmp_path / "out").files
    assert sum(shard["items"] for shard in actual) == 7


def test_items_are_numbered_through_all_files(nlp, text, tmp_path):
    (tmp_path / "more.txt").write_text("one\ntwo\n")
    run(nlp, tmp_path, tmp_path / "out")
    vectors = open_vectors(tmp_path / "out")
    assert [vectors.tokens(number) for number in (0, 1)] == [["one"], ["two"]]
    assert vectors.tokens(2)[0] == "Anna"
    assert [Path(shard["source"]).name for shard in vectors.files[:2]] == ["more.txt", "text.txt"]


class Killed(BaseException):
    pass


def kill_at(patch, moment):
    """Let the process die before or after a call that changes the disk. A dead process does nothing more."""
    count = 0

    def mortal(call):
        def dying(*args, **kwargs):
            nonlocal count
            count += 1
            if count > moment:
                raise Killed
            return call(*args, **kwargs)

        return dying

    for owner, name in [
        (Path, "replace"), (Path, "unlink"), (Path, "rmdir"), (Path, "mkdir"), (os, "fsync"),
    ]:  # fmt: skip
        patch.setattr(owner, name, mortal(getattr(owner, name)))


@pytest.mark.parametrize("format", FORMATS)
def test_killed_at_any_moment_and_resumed(nlp, text, tmp_path, format):
    out = tmp_path / "out"
    run(nlp, text, out, format=format)
    expected = tree(out)
    out.rename(tmp_path / "expected")
    for moment in itertools.count():
        with pytest.MonkeyPatch.context() as patch:
            kill_at(patch, moment)
            try:
                run(nlp, text, out, format=format)
                break
            except Killed:
                pass
        run(nlp, text, out, format=format, resume=True)
        assert tree(out) == expected
        assert not out.with_name("out.parts").exists()
        run(nlp, text, out, format=format, resume=True)
        assert tree(out) == expected
        shutil.rmtree(out) if out.is_dir() else out.unlink()
    assert moment > 10
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"out", "expected", text.name, "w.safetensors"}


def restore(saved, out):
    if out.is_dir():
        shutil.rmtree(out)
    (shutil.copytree if saved.is_dir() else shutil.copy)(saved, out)


@pytest.mark.parametrize("format", ["safetensors", "hdf5"])
def test_vectors_are_replaced_by_complete_ones(nlp, text, tmp_path, format):
    """If the process is killed at any moment, the old or the new vectors are complete."""
    out, old, options = tmp_path / "out", tmp_path / "old", EmbedOptions(dtype="float16")
    run(nlp, text, out, format=format, options=options)
    expected = tree(out)
    shutil.rmtree(out) if out.is_dir() else out.unlink()
    run(nlp, text, old, format=format)
    old_files = {name.removeprefix("old"): data for name, data in tree(old).items()}
    kept = 0
    for moment in itertools.count():
        restore(old, out)
        with pytest.MonkeyPatch.context() as patch:
            kill_at(patch, moment)
            try:
                run(nlp, text, out, format=format, options=options, force=True)
                break
            except Killed:
                pass
        present = {name.removeprefix("out"): data for name, data in tree(out).items()}
        if old_files.items() <= present.items():
            kept += 1
        else:
            new = {name.removeprefix("out"): data for name, data in expected.items()}
            assert (out / ".new/index.json").exists() or new.items() <= present.items()
        run(nlp, text, out, format=format, options=options, force=True)
        assert tree(out) == expected
    assert moment > kept > 5
    assert tree(out) == expected
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"out", "old", text.name, "w.safetensors"}


@pytest.mark.parametrize("format", FORMATS)
def test_a_replacement_is_resumed(nlp, text, tmp_path, format):
    out, options = tmp_path / "out", EmbedOptions(dtype="float16")
    run(nlp, text, out, format=format)
    old = tree(out)
    next(embed_shards(nlp, str(text), out, format=format, options=options, force=True))
    assert old.items() <= tree(out).items()
    assert run(nlp, text, out, format=format, options=options, resume=True) == [2, 5]
    assert tree(out) != old
    assert run(nlp, text, out, format=format, options=options, resume=True) == []


@pytest.mark.parametrize("format", FORMATS)
def test_a_second_run_is_refused(nlp, text, tmp_path, format):
    out = tmp_path / "out"
    first = embed_shards(nlp, str(text), out, format=format)
    next(first)
    for how in ({}, {"resume": True}, {"force": True}):
        with pytest.raises(BlockingIOError, match=f"{out}: process "):
            run(nlp, text, out, format=format, **how)
    first.close()
    assert len(run(nlp, text, out, format=format, resume=True)) == 2


def test_only_what_is_missing_is_computed(nlp, text, tmp_path):
    out = tmp_path / "out"
    assert run(nlp, text, out) == [0, 2, 5]
    expected = tree(out)
    (out / "shard-000001.safetensors").unlink()
    (out / "index.json").unlink()
    assert run(nlp, text, out, resume=True) == [2]
    assert tree(out) == expected


def test_nothing_to_resume_starts(nlp, text, tmp_path):
    assert len(run(nlp, text, tmp_path / "out", resume=True)) == 3


def test_memory_holds_one_shard(nlp, text, tmp_path):
    text.write_text(text.read_text() * 2)
    read, alive = [], []

    def engine(nlp, options, shards):
        counted = (read.append(shard.number) or shard for shard in shards)
        for written, result in enumerate(embed_here(nlp, options, counted)):
            assert len(read) == written + 1
            alive.append(sum(isinstance(thing, Doc) for thing in gc.get_objects()))
            yield result

    gc.collect()
    run(nlp, text, tmp_path / "out", engine=engine)
    assert len(read) == len(alive) == 6
    assert max(alive) == alive[0]


@pytest.mark.parametrize("format", FORMATS)
def test_what_is_there_is_kept(nlp, text, tmp_path, format):
    out = tmp_path / "out"
    run(nlp, text, out, format=format)
    before = tree(out)
    with pytest.raises(FileExistsError, match="--force"):
        run(nlp, text, out, format=format)
    with pytest.raises(ValueError, match="Set only one of them"):
        run(nlp, text, out, format=format, force=True, resume=True)
    with pytest.raises(ValueError, match="dtype = 'float16', was 'float32'"):
        run(nlp, text, out, format=format, options=EmbedOptions(dtype="float16"), resume=True)
    assert tree(out) == before
    run(nlp, text, out, format=format, options=EmbedOptions(dtype="float16"), force=True)
    assert tree(out) != before
    run(nlp, text, out, format=format, force=True)
    assert tree(out) == before


def test_parts_of_a_file_are_not_for_another(nlp, text, tmp_path):
    out = tmp_path / "out.h5"
    next(embed_shards(nlp, str(text), out, format="hdf5"))
    with pytest.raises(FileExistsError, match=r"out\.h5\.parts already contains"):
        run(nlp, text, out, format="hdf5")
    with pytest.raises(ValueError, match="layers = 'top', was 'all'"):
        run(nlp, text, out, format="hdf5", options=EmbedOptions(layers="top"), resume=True)
    run(nlp, text, out, format="hdf5", force=True)
    assert h5py.File(out)["0"].shape == (3, 9, 10)


def test_other_pipelines_are_told_apart(nlp, text, weights, tmp_path):
    out = tmp_path / "out"
    run(nlp, text, out)
    same = tmp_path / "moved.safetensors"
    same.write_bytes(weights.read_bytes())
    assert run(pipelines.blank(same), text, out, resume=True) == []
    whole = pipelines.blank(weights, get_spans={"@misc": "spacy-elmo.doc.v1"})
    with pytest.raises(ValueError, match="pipeline = "):
        run(whole, text, out, resume=True)
    special = pipelines.blank(weights)
    special.tokenizer.add_special_case("Rome", [{"ORTH": "Ro"}, {"ORTH": "me"}])
    with pytest.raises(ValueError, match="pipeline = "):
        run(special, text, out, resume=True)
    trained = pipelines.blank(weights)
    next(pipelines.bilm(trained).parameters()).data[0] += 1
    with pytest.raises(ValueError, match="weights = "):
        run(trained, text, out, resume=True)


def test_other_text_is_refused(nlp, text, tmp_path):
    out = tmp_path / "out"
    run(nlp, text, out)
    (out / "index.json").unlink()
    whole = text.read_text()
    text.write_text(whole.replace("Rome", "Bonn"))
    with pytest.raises(ValueError, match="has changed since .*shard-000000"):
        run(nlp, text, out, resume=True)
    text.write_text("\n".join(whole.splitlines()[:5]) + "\n")
    with pytest.raises(ValueError, match="shard-000002.* has been removed"):
        run(nlp, text, out, resume=True)
    assert not (out / "index.json").exists()


@pytest.mark.parametrize("format", ["hdf5", "parquet"])
def test_other_text_of_a_complete_file_is_refused(nlp, text, tmp_path, format):
    out = tmp_path / "out"
    run(nlp, text, out, format=format)
    assert run(nlp, text, out, format=format, resume=True) == []
    text.write_text(text.read_text() + "One more line\n")
    with pytest.raises(ValueError, match="The text .* has changed since"):
        run(nlp, text, out, format=format, resume=True)


@pytest.mark.parametrize(
    ("name", "value"),
    [("layers", "averge"), ("dtype", "float64"), ("pooling", "avg"), ("format", "h5")],
)
def test_unknown_choices_are_refused(nlp, text, tmp_path, name, value):
    with pytest.raises(ValueError, match=f"{name} = '{value}': it must be one of"):
        embed(nlp, text, tmp_path / "out", **{name: value})
    assert not (tmp_path / "out").exists()


def test_a_folder_of_other_things_is_left_alone(nlp, text, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").touch()
    for force in (False, True):
        with pytest.raises(FileExistsError, match=r"other files \(thesis\.tex"):
            run(nlp, text, tmp_path / "out", force=force)
    with pytest.raises(FileExistsError, match="is a file"):
        run(nlp, text, text)


@pytest.mark.parametrize("format", ["hdf5", "parquet"])
@pytest.mark.parametrize("how", [{}, {"force": True}, {"resume": True}])
def test_a_folder_is_no_file_to_write(nlp, text, tmp_path, format, how):
    out = tmp_path / "out"
    run(nlp, text, out)
    before = tree(out)
    with pytest.raises(
        IsADirectoryError, match=f"out is a folder, but the format {format} writes a file"
    ):
        run(nlp, text, out, format=format, **how)
    assert tree(out) == before
    assert not (tmp_path / "out.parts").exists()


def test_force_leaves_what_is_not_its_own(nlp, text, tmp_path):
    out = tmp_path / "out"
    run(nlp, text, out)
    (out / "notes.txt").write_text("mine")
    run(nlp, text, out, force=True)
    assert (out / "notes.txt").read_text() == "mine"
    assert len(open_vectors(out)) == 7


@pytest.mark.parametrize("content", ["", '{"text": '])
def test_unreadable_or_empty_text_leaves_nothing(nlp, tmp_path, content):
    (tmp_path / "a.jsonl").write_text(content)
    with pytest.raises(ValueError, match="is empty|is not valid JSON"):
        run(nlp, tmp_path / "a.jsonl", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("format", FORMATS)
def test_a_full_disk_names_the_file_and_leaves_no_litter(nlp, text, tmp_path, format):
    """Complete shards are kept, so that --resume can use them."""
    out = tmp_path / "out"
    with pytest.raises(OSError) as raised, limited_file_size(1500):
        run(nlp, text, out, format=format)
    folder = out if format == "safetensors" else tmp_path / "out.parts"
    assert str(folder / "shard-000000.safetensors") in str(raised.value)
    assert [path.name for path in folder.iterdir()] == ["settings.json"]
    if format != "safetensors":
        with pytest.raises(OSError) as raised, limited_file_size(5000):
            run(nlp, text, out, format=format, resume=True)
        assert str(out) in str(raised.value)
    run(nlp, text, out, format=format, resume=True)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"out", text.name, "w.safetensors"}


def test_damaged_settings_are_one_message(nlp, text, tmp_path):
    run(nlp, text, tmp_path / "out")
    (tmp_path / "out" / "settings.json").write_text("{")
    with pytest.raises(ValueError, match=r"settings\.json is not valid JSON"):
        run(nlp, text, tmp_path / "out", resume=True)


def test_an_error_half_way_can_be_mended(nlp, text, tmp_path):
    whole = text.read_bytes()
    text.write_bytes(whole.replace(b"Eve", b"\xff"))
    with pytest.raises(ValueError, match=r"line 7 is not UTF-8 .*file$"):
        run(nlp, text, tmp_path / "out")
    assert json.loads((tmp_path / "out" / "settings.json").read_text())["text"] == str(text)
    text.write_bytes(whole)
    assert run(nlp, text, tmp_path / "out", resume=True) == [5]
