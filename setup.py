# SPDX-License-Identifier: Apache-2.0
"""Maps the top folders of the repository to `txrocketmq.*`, and makes the page of a package index.

All else is in pyproject.toml.
"""

import re
import tomllib
from pathlib import Path

from setuptools import find_packages, setup

PARTS = (
    "remoting",
    "access",
    "namesrv",
    "broker",
    "client",
    "proxy",
    "cli",
    "testing",
    "spark",
)
"""The top folders that are packages; docs/file_map.py reads this list for all others."""
ITSELF = "package"
"""The folder of the package that has the parts inside: its docstring, and `python -m`."""
SPARK_FINDS = "pyspark_rocketmq"
"""Spark takes sources from top-level packages called pyspark_*."""
FOLDERS = [
    name
    for part in PARTS
    for name in find_packages(include=[part, f"{part}.*"], exclude=[f"spark.{SPARK_FINDS}"])
]


def readme() -> str:
    """README.md for a page that has no files beside it.

    Its links lead to the files of this release at the address that `Source` of project.urls names;
    without such an address they are plain text.
    """
    project = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["project"]
    text = Path("README.md").read_text("utf-8")
    source = project.get("urls", {}).get("Source")
    if source is None:
        return re.sub(r"!?\[([^\]]*)\]\((?!#|[a-z]+:)[^)]*\)", r"\1", text)
    return re.sub(r"\]\((?!#|[a-z]+:)", f"]({source}/blob/v{project['version']}/", text)


setup(
    long_description=readme(),
    long_description_content_type="text/markdown",
    packages=["txrocketmq", *(f"txrocketmq.{folder}" for folder in FOLDERS), SPARK_FINDS],
    package_dir={
        "txrocketmq": ITSELF,
        **{f"txrocketmq.{part}": part for part in PARTS},
        SPARK_FINDS: f"spark/{SPARK_FINDS}",
    },
    package_data={"": ["py.typed", "*.pyi", "*.j2", "*.properties"]},
)
