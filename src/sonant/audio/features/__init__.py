"""Waveforms to features: one definition for training, evaluation, live sessions and exported graphs."""
