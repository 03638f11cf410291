"""`python -m datahall` is `datahall`."""

from datahall.cli.main import main

if __name__ == "__main__":
    main()
