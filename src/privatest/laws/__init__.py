"""Laws of statistics and of noise under the null hypothesis: public, known without data."""
