"""Workers of one run share the processors: each takes one thread, unless the environment says otherwise."""

import os

if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
