"""Processes of Python that this one starts, an executor of them, and what the threads of this one share."""
