"""Where noise meets a number: no other package draws it."""
