"""A fit whose rows, and if asked its parameters, lie in several processes or come in runs."""
