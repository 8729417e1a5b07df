"""`python -m vkprovider` is the command `vkprovider`."""

from vkprovider.cli.main import main

if __name__ == "__main__":
    main()
