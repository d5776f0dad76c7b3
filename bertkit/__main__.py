"""`python -m bertkit` is the command `bertkit`."""

from bertkit.cli import main

if __name__ == "__main__":
    main()
