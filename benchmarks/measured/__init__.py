"""What several benchmarks share: the file of measured rows, the cases of rank recovery, the tables and their rivals."""
