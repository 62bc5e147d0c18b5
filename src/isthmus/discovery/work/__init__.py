"""Units of work: run side by side, kept in a folder, told to whoever listens."""
