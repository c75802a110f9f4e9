"""The fast operations under the network, each with a plain twin in torch operators."""
