"""Where noise meets a number."""
