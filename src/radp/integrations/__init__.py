"""radp inside the programs of others."""
