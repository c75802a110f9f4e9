"""Time of each kind of answer of the explore page's server, and its memory."""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measuring.process_memory import peak, resident
from measuring.sentences import SAMPLE, read_sentences

from spacy_elmo.explore.explorer import MAX_CHARACTERS, Explorer
from spacy_elmo.explore.server import make_server


class Client:
    """Connection to the server, which measures answers."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
        self.times: dict[str, list[tuple[float, float]]] = {}

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def ask(self, kind: str, path: str, body: dict[str, Any]) -> Any:
        """Send a question, and keep the milliseconds that passed and those of this process on processors."""
        passed, computed = time.perf_counter(), time.process_time()
        headers = {"Content-Type": "application/json"}
        self._connection.request("POST", f"/api/{path}", json.dumps(body), headers)
        response = self._connection.getresponse()
        answer = json.loads(response.read())
        if response.status != 200:
            raise ValueError(answer["error"])
        times = (time.perf_counter() - passed, time.process_time() - computed)
        self.times.setdefault(kind, []).append((1000 * times[0], 1000 * times[1]))
        return answer


def questions(path: Path, count: int) -> list[str]:
    """Return sentences of 5 to 40 words of a text."""
    sentences = read_sentences(path, 60 * count)
    texts = [" ".join(words) for words in sentences if 5 <= len(words) <= 40]
    return [text for text in texts if len(text) <= MAX_CHARACTERS][: 2 * count]


def measure(client: Client, texts: list[str], count: int) -> None:
    """Ask every kind of question `count` times, about different sentences."""
    for first, second in zip(texts[:count], texts[count:], strict=True):
        (tokens,) = client.ask("a sentence", "sentences", {"texts": [first]})["sentences"]
        client.ask("two sentences", "sentences", {"texts": [first, second]})
        words = [i for i, token in enumerate(tokens) if not token["blank"]]
        by_count = sorted(words, key=lambda i: tokens[i]["count"])
        rare = next((i for i in by_count if tokens[i]["count"]), by_count[0])
        for kind, token in (("a rare word", rare), ("the most frequent word", by_count[-1])):
            body = {"texts": [first], "sentence": 0, "token": token}
            client.ask(kind, "word", body)
        body = {"texts": [first, second], "sentence": 0, "token": by_count[len(by_count) // 2]}
        client.ask("a word of two sentences", "word", body)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "index", type=Path, help="made by `search index WEIGHTS TEXT FOLDER --unit word`"
    )
    parser.add_argument("--weights", default="en_mini_v3", help="a bundled biLM, or a path")
    parser.add_argument("--text", type=Path, default=SAMPLE, help="raw text of the questions")
    parser.add_argument("--count", type=int, default=100, help="questions of each kind")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    texts = questions(args.text, args.count + 5)
    before = resident()
    start = time.perf_counter()
    explorer = Explorer.load(args.weights, args.index)
    server = make_server(explorer, 0)
    threading.Thread(target=server.run, daemon=True).start()
    client = Client(int(server.effective_port))
    client.ask("the first answer", "sentences", {"texts": [texts[0]]})
    loading = time.perf_counter() - start
    with contextlib.closing(Client(int(server.effective_port))) as warm_up:
        measure(warm_up, texts[-10:], 5)
    measure(client, texts[: 2 * args.count], args.count)
    client.close()
    about = explorer.overview()
    print(
        f"{about['tokens']:,} words, {about['sentences']:,} sentences, {about['weights']}, {args.threads} threads\n"
        f"ready after {loading:.1f} s; memory {resident():,.0f} MB (peak {peak():,.0f}), of which {before:,.0f} MB are"
        " Python with its libraries; it includes the pages of the index's files that were read\n"
    )
    rows = {kind: _row(np.array(times)) for kind, times in client.times.items()}
    print(f"{'milliseconds':26}{'p50':>8}{'p95':>8}{'computed p50':>15}{'p95':>8}")
    for kind, row in rows.items():
        print(
            f"{kind:26}{row['p50']:8.0f}{row['p95']:8.0f}{row['cpu p50']:15.0f}{row['cpu p95']:8.0f}"
        )
    if args.out:
        result = {"corpus": about, "memory_mb": resident(), "milliseconds": rows}
        args.out.write_text(json.dumps(result, indent=2) + "\n", "utf8")


def _row(times: np.ndarray) -> dict[str, float]:
    (p50, cpu50), (p95, cpu95) = np.quantile(times, [0.5, 0.95], axis=0).tolist()
    return {"p50": p50, "p95": p95, "cpu p50": cpu50, "cpu p95": cpu95}


if __name__ == "__main__":
    main()
