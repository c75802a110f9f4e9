"""From raw text to a prepared corpus: types, counts and memory-mapped ids."""
