# SPDX-License-Identifier: Apache-2.0
"""Maps the top folders of the repository to `txrocketmq.*`; all else is in pyproject.toml."""

from setuptools import find_packages, setup

PARTS = ("remoting", "namesrv", "broker", "client", "spark", "cli", "testing")
SPARK_FINDS = "pyspark_rocketmq"
"""Spark takes sources from top-level packages called pyspark_*."""
FOLDERS = [
    name
    for part in PARTS
    for name in find_packages(include=[part, f"{part}.*"], exclude=[f"spark.{SPARK_FINDS}"])
]

setup(
    packages=[*(f"txrocketmq.{folder}" for folder in FOLDERS), SPARK_FINDS],
    package_dir={
        **{f"txrocketmq.{part}": part for part in PARTS},
        SPARK_FINDS: f"spark/{SPARK_FINDS}",
    },
    package_data={"": ["py.typed", "*.j2", "*.properties"]},
)
