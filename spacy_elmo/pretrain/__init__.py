"""Making weights: raw text -> prepared corpus -> training loop -> weights file."""
