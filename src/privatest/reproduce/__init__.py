"""Published methods as they were published, to compare with. Simulated noise only."""
