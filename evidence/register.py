"""What `--code register.py` gives to spaCy's commands: the components of the tasks."""

from tasks import coref, nli, qa, srl  # noqa: F401
