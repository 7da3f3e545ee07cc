"""One file per origin of logs; each ends in a `Scenario`."""
