"""The exception of a run that was stopped, in a module that loads quickly: who starts a run imports it first."""


class PretrainingStopped(Exception):
    """End of a run on request. Its checkpoint is that of the last step, so nothing is lost."""
