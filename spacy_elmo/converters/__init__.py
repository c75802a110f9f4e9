"""Weights of other ELMo programs converted to ours, and back.

Each foreign program has a folder, and each of its formats is a module of it: `conversion` (its tensors as our
`Weights`), or `hdf5_conversion` and `checkpoint_conversion` for the two formats of bilm-tf. Beside them are, where
needed, `files` (the files on disk, unchanged), `options` (its options as a `BiLMConfig`) and `export` (our `Weights` as
its files). `readers/` parses file formats, and contains nothing about ELMo.

The formats that are read are the rows of `formats.FORMATS`. The `recognize` of a format must match the files of no
other one, or `auto` refuses both. Exports, and so ONNX, are not in this table: each is a choice in `cli/export.py`.
CONTRIBUTING.md lists the other places that a new format needs.
"""
