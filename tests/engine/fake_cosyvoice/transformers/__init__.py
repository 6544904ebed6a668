"""A double: nothing but a version, which FAKE_TRANSFORMERS_VERSION overrides."""

import os

__version__ = os.environ.get("FAKE_TRANSFORMERS_VERSION", "4.51.3")
