"""Any trained module as a chain of layers: cut into two halves, or compressed. What a chain is: `networks.chain`."""
