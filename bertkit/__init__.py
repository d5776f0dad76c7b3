"""bertkit: everything BERT, from raw text to a served and explained model, on the machine you have."""

__version__ = "0.1.0"
