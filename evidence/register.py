"""The components of the tasks, for spaCy's option `--code register.py`."""

import tasks.coref.component
import tasks.nli.model
import tasks.nli.scorer
import tasks.qa.component
import tasks.srl.component  # noqa: F401
