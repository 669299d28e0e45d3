"""Questions to a release, and answers with their bars."""
