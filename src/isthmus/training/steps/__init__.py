"""Objective and gradient at the parameters: what solvers call."""
