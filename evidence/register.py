"""The components of the tasks, for spaCy's option `--code register.py`."""

import tasks.coref
import tasks.nli
import tasks.qa
import tasks.srl  # noqa: F401
