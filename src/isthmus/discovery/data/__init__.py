"""The data of a discovery: arguments checked, columns scaled, rows split, the problem posed."""
