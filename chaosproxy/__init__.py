"""A chaos proxy for Redis-backed memory: it breaks one command at a time, on purpose, and says so."""

__version__ = "0.1.0"
