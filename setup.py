# SPDX-License-Identifier: Apache-2.0
"""Maps the top folders of the repository to `txrocketmq.*`, and makes the page of a package index.

All else is in pyproject.toml.
"""

import re
import tomllib
from pathlib import Path

from setuptools import find_packages, setup

PARTS = ("remoting", "namesrv", "broker", "client", "spark", "cli", "testing")
SPARK_FINDS = "pyspark_rocketmq"
"""Spark takes sources from top-level packages called pyspark_*."""
FOLDERS = [
    name
    for part in PARTS
    for name in find_packages(include=[part, f"{part}.*"], exclude=[f"spark.{SPARK_FINDS}"])
]


def readme() -> str:
    """README.md, with links that lead to the files of this release from anywhere."""
    project = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["project"]
    files = f"{project['urls']['Source']}/blob/v{project['version']}/"
    text = Path("README.md").read_text("utf-8")
    return re.sub(r"\]\((?!#|[a-z]+:)", f"]({files}", text)


setup(
    long_description=readme(),
    long_description_content_type="text/markdown",
    packages=[*(f"txrocketmq.{folder}" for folder in FOLDERS), SPARK_FINDS],
    package_dir={
        **{f"txrocketmq.{part}": part for part in PARTS},
        SPARK_FINDS: f"spark/{SPARK_FINDS}",
    },
    package_data={"": ["py.typed", "*.pyi", "*.j2", "*.properties"]},
)
