"""`python -m skipstone` is `skipstone`."""

from skipstone.cli import main

if __name__ == "__main__":
    main()
