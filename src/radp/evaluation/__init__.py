"""The proof: tables of planners, fidelity of the head, temporal alignment of pressure and risk, with intervals."""
