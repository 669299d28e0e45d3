"""The one way to show a result: pictures and pages, which cost nothing more."""
