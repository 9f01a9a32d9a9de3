"""What a corpus holds and what is wrong with it: for a terminal, for a program, and as a page."""
