"""Archives and files of `torch.save`: their content comes out, unless it could do harm."""

import gzip
import io
import os
import pickle
import tarfile
import tempfile
import zipfile
from collections import OrderedDict

import numpy as np
import pytest
import torch

from spacy_elmo.converters import untrusted_files
from spacy_elmo.converters.untrusted_files import opened, read_state_dict

FILES = {"options.json": b"{}", "weights.hdf5": bytes(range(256)) * 40, "inner/a b.txt": b""}


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    """Set the folder for temporary files, and check that it is empty at the end."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


def write_zip(path, files, method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", method) as file:
        for name, content in files.items():
            file.writestr(name, content)
    return path


def write_tar(path, files, mode="w:gz", **fields):
    with tarfile.open(path, mode) as file:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            for field, value in fields.items():
                setattr(member, field, value)
            file.addfile(member, io.BytesIO(content))
    return path


WRITERS = {
    "m.zip": lambda path, files: write_zip(path, {f"../../{n}": data for n, data in files.items()}),
    "M.ZIP": write_zip,
    "m.tar.gz": write_tar,
    "m.tgz": write_tar,
    "m.tar": lambda path, files: write_tar(path, files, "w"),
}


def content(folder):
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("top", ["", "model/", "model/v2/"])
def test_files_come_out(tmp_path, name, top):
    """The files may be at the top, or in nested folders. Errors have paths in the archive."""
    files = {top + name: data for name, data in FILES.items()}
    path = WRITERS[name](tmp_path / name, files)
    with opened(path) as model:
        assert content(model.path) == FILES
        assert model.shown(model.path / "options.json") == f"{path}/{top}options.json"
    for error in (ValueError, FileNotFoundError):
        with pytest.raises(ValueError) as raised, opened(path) as model:
            raise error(f"{model.path / 'options.json'}: bad")
        assert str(raised.value) == f"{path}/{top}options.json: bad"


def test_folders_and_files_are_left_alone(tmp_path):
    """A folder that contains nothing but a subfolder stands for the subfolder."""
    (tmp_path / "folder.zip" / "model").mkdir(parents=True)
    (tmp_path / "folder.zip" / "__MACOSX").mkdir()
    with opened(tmp_path / "folder.zip") as model:
        assert model.path == tmp_path / "folder.zip" / "model"
    for path in (tmp_path, tmp_path / "nowhere", tmp_path / "best.th"):
        with opened(path) as model:
            assert model.path == path and model.shown(path) == str(path)


def tar_bomb(path):
    path.write_bytes(gzip.compress(bytes(1 << 20)))


def sparse(path):
    member = tarfile.TarInfo("a")
    member.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "a",
                          "GNU.sparse.realsize": str(1 << 40)}  # fmt: skip
    data = b"1\n0\n1\n".ljust(512, b"\0") + b"x"
    member.size = len(data)
    with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as file:
        file.addfile(member, io.BytesIO(data))


def encrypted(path):
    data = bytearray(write_zip(path, {"a": b"1"}).read_bytes())
    for signature, place in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        data[data.index(signature) + place] |= 1
    path.write_bytes(data)


HARM = [
    ("m.zip", lambda path: write_zip(path, {"a": bytes(1 << 20)}), "unpacks to more than 100,000 bytes"),
    ("m.tgz", tar_bomb, "unpacks to more than 100,000 bytes"),
    ("m.tgz", sparse, "unpacks to more than 100,000 bytes"),
    ("m.zip", lambda path: write_zip(path, {"a": b"1"}, zipfile.ZIP_BZIP2), "unusual method"),
    ("m.zip", lambda path: write_zip(path, dict.fromkeys("abcdef", b"")), "5 files"),
    ("m.tar.gz", lambda path: write_tar(path, dict.fromkeys("abcdef", b"")), "5 files"),
    ("m.tar", lambda path: write_tar(path, {"../a": b""}, "w"), "outside"),
    ("m.tar", lambda path: write_tar(path, {"a": b""}, "w", type=tarfile.SYMTYPE, linkname="/etc"), "link"),
    ("m.tar", lambda path: write_tar(path, {"a": b""}, "w", type=tarfile.FIFOTYPE), "special file"),
    ("m.zip", encrypted, "encrypted"),
    ("m.zip", lambda path: path.write_bytes(b"PK"), "not a readable archive"),
    ("m.tgz", lambda path: path.write_bytes(b"\x1f\x8b"), "not a readable archive"),
    ("m.tgz", lambda path: path.write_bytes(write_tar(path, FILES).read_bytes()[:200]), "not a readable archive"),
    ("m.zip", lambda path: None, "No such file"),
]  # fmt: skip


@pytest.mark.parametrize("name, write, problem", HARM)
def test_harm(tmp_path, monkeypatch, name, write, problem):
    monkeypatch.setattr(untrusted_files, "expanded_bytes", lambda size: 100_000)
    monkeypatch.setattr(untrusted_files, "MAX_MEMBERS", 5)
    write(tmp_path / name)
    before = set(tmp_path.iterdir())
    with pytest.raises(ValueError, match=problem) as error, opened(tmp_path / name):
        raise AssertionError("nothing may be read")
    assert str(tmp_path / name) in str(error.value)
    assert set(tmp_path.iterdir()) == before


# torch.save

TENSORS = {"a.weight": torch.arange(6.0).view(2, 3), "b": torch.tensor([1, 2]).half()}


@pytest.fixture(params=[True, False], ids=["zip", "old"])
def save(request, tmp_path):
    """Write a file in PyTorch's format, or in its format before 1.6."""

    def write(content):
        path = tmp_path / "weights.th"
        torch.save(content, path, _use_new_zipfile_serialization=request.param)
        return path

    return write


@pytest.mark.parametrize("kind", [dict, OrderedDict])
def test_tensors(save, kind):
    read = read_state_dict(
        save(kind({**TENSORS, "c": torch.nn.Parameter(torch.ones(2).bfloat16())}))
    )
    assert {n: (a.dtype.name, a.tolist()) for n, a in read.items()} == {
        "a.weight": ("float32", [[0, 1, 2], [3, 4, 5]]), "b": ("float16", [1, 2]), "c": ("float32", [1, 1])
    }  # fmt: skip


def test_file_of_old_pytorch_with_a_gpu(tmp_path):
    """As the published models of ELMoForManyLangs."""
    path = tmp_path / "encoder.pkl"
    torch.save(OrderedDict(TENSORS), path, _use_new_zipfile_serialization=False)
    content = path.read_bytes()
    for old, new in {
        b"ctorch\nFloat": b"ctorch.cuda\nFloat",
        b"\3\0\0\0cpu": b"\6\0\0\0cuda:0",
    }.items():
        assert old in content
        content = content.replace(old, new)
    path.write_bytes(content)
    assert np.array_equal(read_state_dict(path)["a.weight"], TENSORS["a.weight"])


class Code:
    """An object that runs a command when it is unpickled."""

    def __init__(self, path):
        self.command = f"touch {path}"

    def __reduce__(self):
        return os.system, (self.command,)


@pytest.mark.parametrize(
    "make, problem",
    [
        (lambda path: {"a": Code(path)}, "a call of .*system, which was not executed"),
        (lambda path: torch.nn.Linear(2, 3), "a call of .*Linear, which was not executed"),
        (lambda path: [1, 2], "a list"),
        (lambda path: {"a": 1}, "a is a int"),
        (lambda path: {"a": torch.zeros(2, 2).to_sparse()}, ""),
        (lambda path: {"a": torch.zeros(1).expand(10**12)}, "4,000,000,000,000 bytes of tensors"),
        (lambda path: {"a": torch.empty(10**12, device="meta")}, "4,000,000,000,000 bytes of tensors"),
        (lambda path: dict.fromkeys(map(str, range(1000)), torch.ones(1 << 14)), "bytes of tensors"),
    ],
)  # fmt: skip
def test_no_tensors_of_a_network(save, tmp_path, make, problem):
    path = save(make(tmp_path / "ran"))
    with pytest.raises(ValueError, match=f"weights.th is not a file of torch.save .*{problem}"):
        read_state_dict(path)
    path.write_bytes(pickle.dumps(Code(tmp_path / "ran")))
    with pytest.raises(ValueError, match="weights.th is not a file of torch.save"):
        read_state_dict(path)
    assert not (tmp_path / "ran").exists()


def test_packed_parts(tmp_path):
    """torch would decompress such parts to any size."""
    plain, packed = tmp_path / "plain.th", tmp_path / "packed.th"
    torch.save({"a": torch.zeros(1 << 20)}, plain)
    with zipfile.ZipFile(plain) as old:
        write_zip(packed, {name: old.read(name) for name in old.namelist()})
    with pytest.raises(ValueError, match="packed.th .* is compressed"):
        read_state_dict(packed)


def test_missing(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        read_state_dict(tmp_path / "nowhere")
