"""The command line: the script `unshard`, and `python -m unshard` where that is not on the path."""

import re
import sys

from unshard.cli.loading import loading

_CLIENT_LIBRARY = re.compile(r"lib(mariadb|mysqlclient|perconaserverclient)\S*?\.so[.\d]*")


def main() -> None:
    """Run the script."""
    try:
        with loading():
            from unshard.cli.app import main as run
        run()
    except ImportError as error:  # what mysqlclient is linked to is no package of Python's
        library = _CLIENT_LIBRARY.match(str(error))
        if library is None:
            raise
        name = "libmariadb3" if library[1] == "mariadb" else "libmysqlclient21"
        sys.exit(f"The library {library[0]} is not installed; on Debian and Ubuntu: apt-get install {name}")


if __name__ == "__main__":
    main()
