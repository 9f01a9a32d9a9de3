"""From what people wrote to what a model reads."""
