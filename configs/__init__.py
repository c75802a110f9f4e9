"""The shipped configs, installed as `spacy_elmo.configs`: of pretraining, and of most trainable components."""
