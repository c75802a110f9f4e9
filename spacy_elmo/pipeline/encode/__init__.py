"""The computation of biLM layers for Docs: words and spans of Docs (`spans.py`), the thinc model (`encoder.py`) and
its shim, which holds the network (`shim.py`).

Words are batched on three levels. A group of Docs is computed together, so that their spans can be sorted by length. A
batch has spans of nearly equal lengths, at most `max_words` words. A chunk has some time steps of a batch with a
longer span.
"""
