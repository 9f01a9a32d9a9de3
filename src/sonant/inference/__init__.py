"""BUNDLE -> answers: what was trained, at work."""
