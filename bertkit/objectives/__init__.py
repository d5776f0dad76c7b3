"""What is learned: each objective changes examples (NumPy, no torch) and asks something about them."""
