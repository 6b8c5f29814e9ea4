"""The command line: the script `unshard`, and `python -m unshard` where that is not on the path."""

from unshard.cli.loading import loading


def main() -> None:
    """Entry point of the script."""
    with loading():
        from unshard.cli.app import main as run
    run()


if __name__ == "__main__":
    main()
