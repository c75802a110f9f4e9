"""Settings and input from the network: configs, cards, downloads."""

import hashlib
import json
import re
import shutil
import socket
import threading
from pathlib import Path

from typer.testing import CliRunner

from spacy_elmo.bilm.weights import Weights
from spacy_elmo.cli import elmo_cli
from spacy_elmo.converters.download import fetch
from spacy_elmo.converters.models import RemoteFile
from spacy_elmo.pretraining.config import PretrainConfig
from tests import tiny
from tests.fuzz.bytes_and_values import damaged_bytes, damaged_json, damaged_text
from tests.fuzz.target import Target

_CONFIGS = Path(__file__).parents[2] / "configs"
_CARD = {
    "name": "x", "language": "en", "licence": "CC0", "steps": 3, "perplexity": {"mean": 3.5, "known": None},
    "sources": ["a", {"url": "https://example.com"}],
}  # fmt: skip
_STYLE = re.compile(r"\x1b\[[0-9;]*m")
"""The colours of wasabi."""
_CONTENT = bytes(range(256)) * 8
_ANSWER = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: 2048\r\n"
    b"Connection: close\r\n\r\n" + _CONTENT
)


def _make_config(folder: Path) -> None:
    shutil.copy(_CONFIGS / "pretrain_smoke.cfg", folder / "c.cfg")


def _load_config(folder: Path) -> object:
    return PretrainConfig.read(folder / "c.cfg").model_dump()


def _make_card(folder: Path) -> None:
    (folder / "card.json").write_text(json.dumps(_CARD), "utf8")


def show_card(folder: Path) -> str:
    """Print the card of weights by `info`, and check that the output has no control characters for a terminal."""
    try:
        card = dict(json.loads((folder / "card.json").read_text("utf8")))
        content = Weights.from_bilm(tiny.bilm(tiny.config(layers=1)), card=card).to_bytes()
    except Exception as error:
        raise ValueError(f"{folder}: no card") from error  # nothing that weights could contain
    (folder / "w.safetensors").write_bytes(content)
    shown = CliRunner().invoke(elmo_cli, ["info", str(folder / "w.safetensors"), "--all"])
    if shown.exception is not None and not isinstance(shown.exception, SystemExit):
        raise shown.exception
    text = _STYLE.sub("", shown.output)
    if obeyed := [c for c in text if not (c.isprintable() or c == "\n")]:
        raise AssertionError(f"control characters on the terminal: {obeyed!r:.100}")
    return "".join(line for line in text.splitlines() if "sha256" not in line)


def _make_answer(folder: Path) -> None:
    (folder / "answer").write_bytes(_ANSWER)


def download(folder: Path) -> object:
    """Download a file with a known checksum from a server. A folder contains its answer."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_answer, args=(server, folder / "answer"), daemon=True).start()
        port = server.getsockname()[1]
        checksum = hashlib.sha256(_CONTENT).hexdigest()
        file = RemoteFile(f"http://127.0.0.1:{port}/model.bin", checksum)
        return fetch(file, folder / "cache").read_bytes()


def _answer(server: socket.socket, answer: Path) -> None:
    try:
        connection, _ = server.accept()
        with connection:
            connection.recv(4096)
            connection.sendall(answer.read_bytes())
    except OSError:  # the client has enough
        pass


TARGETS = (
    Target("config", _make_config, _load_config, {"c.cfg": damaged_text}, names_path=False),
    Target("card", _make_card, show_card, {"card.json": damaged_json}),
    Target(
        "download", _make_answer, download, {"answer": damaged_bytes}, digests=True, names_path=False,
        errors=(OSError, ValueError),
    ),
)  # fmt: skip
