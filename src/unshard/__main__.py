"""`python -m unshard`: the command line where the script `unshard` is not on the path."""

from unshard.cli.app import main

main()
