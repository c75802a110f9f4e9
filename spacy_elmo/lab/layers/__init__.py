"""Analysis of the layer weights that the components of a trained pipeline have learned."""
