"""Layer weights that the components of a trained pipeline have learned."""
