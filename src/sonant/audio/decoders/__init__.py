"""One decoder per library, chosen by what the bytes are."""
