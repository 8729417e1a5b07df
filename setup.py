"""Everything is in pyproject.toml, except that the manifests go into the wheel as well: the sandbox applies them."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithManifests(build_py):
    """Copy `manifests/` to `vkprovider/manifests/` of what is built."""

    def run(self) -> None:
        """Build, then copy; an editable installation finds the directory of the checkout."""
        super().run()
        if not self.editable_mode:
            target = Path(self.build_lib, "vkprovider", "manifests")
            shutil.copytree("manifests", target, dirs_exist_ok=True)


setup(cmdclass={"build_py": BuildWithManifests})
