"""`python -m vkprovider.cli.lablet`, where the program is not on PATH."""

from vkprovider.cli.lablet.group import main

main()
