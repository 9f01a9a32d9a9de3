"""Archives of somebody's recordings, of which nobody knows whether they are whole, or meant well."""
