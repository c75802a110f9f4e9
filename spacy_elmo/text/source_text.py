"""The text that a Doc was made from, if its tokens do not spell this text. Two extension attributes remember it:

- `doc._.source_text`: the text.
- `doc._.source_offsets`: start and end of each token in the text, (tokens, 2) int32. The words of a multiword token,
  such as French "du", whose words are "de" and "le", have equal offsets.

They are None if the tokens spell the text.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from spacy.tokens import Doc

for _name in ("source_text", "source_offsets"):
    if not Doc.has_extension(_name):
        Doc.set_extension(_name, default=None)


def set_source(doc: Doc, text: str, offsets: Sequence[tuple[int, int]]) -> None:
    """Remember the text that a Doc was made from, and the start and end of each token in it."""
    doc._.source_text = text
    doc._.source_offsets = np.array(offsets, dtype="int32").reshape(-1, 2)
