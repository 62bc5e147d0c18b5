"""`python -m isthmus`: the command line without its script."""

from isthmus.cli.main import main

if __name__ == "__main__":
    main()
