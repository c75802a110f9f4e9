"""The tasks of the paper for which spaCy has no component. Importing a module registers its functions with spaCy."""
