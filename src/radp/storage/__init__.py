"""How things lie on the disk: arrays and records as bytes, shards with a manifest, files that are whole or absent."""
