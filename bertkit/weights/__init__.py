"""Foreign files in and out: Hugging Face, Google and sentence-transformers directories, and finding them by name."""
