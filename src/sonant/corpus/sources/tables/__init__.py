"""Somebody's tables: of any format, with any column names, each cell read for what it is."""
