"""Pictures of released results: post-processing, with matplotlib (extra "plot")."""
