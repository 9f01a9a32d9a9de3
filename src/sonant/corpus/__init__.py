"""RECORDINGS -> MANIFEST: a folder of somebody's recordings becomes validated, split utterances."""
