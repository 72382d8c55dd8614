"""`python -m flows`: the command line `dtca`."""

from flows.cli import main

if __name__ == "__main__":
    main()
