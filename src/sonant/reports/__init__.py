"""Self-contained pages and plots; knows nothing of what it shows."""
