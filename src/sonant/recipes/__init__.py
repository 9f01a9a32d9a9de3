"""Who meets whom: each task as one file that joins data, model, objective, evaluation and trainer."""
