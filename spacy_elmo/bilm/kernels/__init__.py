"""The fast operations of the network, each with an equivalent in torch operators."""
