"""A second device for tests, on machines without one."""

import os

COMPILER = os.environ.get("CXX", "c++")
