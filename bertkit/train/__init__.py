"""Training: one loop for every objective, its optimisers and schedules, and runs that can be killed at any moment."""
