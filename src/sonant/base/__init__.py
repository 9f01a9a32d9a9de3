"""What every room stands on: errors, lengths, randomness, storage, configuration."""
