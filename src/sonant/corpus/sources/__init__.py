"""One importer per layout that people keep their recordings in."""
