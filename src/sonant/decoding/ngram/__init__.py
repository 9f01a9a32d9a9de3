"""Language models of short histories: estimated from text, read and written as ARPA, looked up in bulk."""
