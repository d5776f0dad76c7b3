"""How good an answer is: scores as the official scripts count them, from answers alone. No torch."""
