"""What a training leaves on disk: states to go on from, bundles that describe themselves, weights of other toolkits."""
