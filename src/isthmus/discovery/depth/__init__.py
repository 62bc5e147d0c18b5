"""The rank as a function of depth, and how far networks hold the data together."""
