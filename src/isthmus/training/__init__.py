"""Objective, solvers, `fit`, stopping, checkpoints and the atomic writing of files.

Networks themselves: `networks`. What a trained network does layer by layer: `diagnostics`. The decision: `discovery`.
"""
