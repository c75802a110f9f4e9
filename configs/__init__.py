"""The shipped configs, installed as `spacy_elmo.configs`: of pretraining, and of every trainable component."""
