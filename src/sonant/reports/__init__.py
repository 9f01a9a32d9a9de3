"""Self-contained pages and plots; they know nothing of what they show."""
