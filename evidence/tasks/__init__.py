"""The paper's tasks that spaCy has no component for. Importing a module registers its parts with spaCy."""
