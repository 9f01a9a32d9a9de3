"""Architectures: one file each, its config first; every encoder answers to one interface."""
