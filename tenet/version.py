"""The version, apart from everything else so that packaging can read it without importing torch."""

__version__ = "0.1.0"
