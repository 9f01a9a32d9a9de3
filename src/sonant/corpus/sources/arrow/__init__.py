"""Datasets as Hugging Face `datasets` and its hub lay them out: Arrow and Parquet files with recordings in a column."""
