"""Sonant trains speech models from people's own recordings and serves exactly what it trained."""

__version__ = "0.1.0"
