"""Processes of Python that this one starts: what they see of the working folder, and an executor of them."""
