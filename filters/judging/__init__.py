"""Small pure functions from facts to one reason."""
