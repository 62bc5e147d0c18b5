"""What is said beside the rank: certified bounds, shares, the linear baseline, energies, what coordinates mean."""
