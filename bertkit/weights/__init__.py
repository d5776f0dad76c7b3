"""Foreign weights in and out: Hugging Face directories, and the names by which they are found."""
