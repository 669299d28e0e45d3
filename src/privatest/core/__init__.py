"""What everything else stands on: errors, budgets and sensitivities, results, secret randomness."""
