"""A BIDS dataset: names, what belongs to a participant, events, confounds, given maps, and Samples of it."""
