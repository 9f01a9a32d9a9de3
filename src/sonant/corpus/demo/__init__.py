"""Speech without recordings: a grammar spoken by many synthetic voices, with the truth about every word."""
