"""Weights of other ELMo programs converted to ours, and back.

Each foreign program has a folder with the same modules, where it needs them: `files` (the files on disk, unchanged),
`options` (its options as a `BiLMConfig`), `conversion` (its tensors as our `Weights`) and `export` (our `Weights` as
its files). `readers/` parses file formats, and contains nothing about ELMo. A new foreign format is another folder, a
row of `formats.FORMATS`, its name in the `Literal` of `one_call.convert`, and a command in `cli/convert.py`.
"""
