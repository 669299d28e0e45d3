"""The foundation: errors, budgets and sensitivities, results, documents, secret randomness."""
