"""The tables of `benchmarks/training.py`, one file each. What they are measured on: `problems`."""
