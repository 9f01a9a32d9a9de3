"""MANIFEST -> BATCH: examples, buckets, collation, prefetching, the store."""
