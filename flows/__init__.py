"""What a person runs: one flow per stage, the flow `dtca` that composes them, the command line."""
