# SPDX-License-Identifier: Apache-2.0
"""Maps the folders at the top of the repository to `txrocketmq.*`; all else is in pyproject.toml."""

from setuptools import find_packages, setup

PARTS = ("remoting", "namesrv", "broker", "client", "spark", "cli", "testing")
setup(
    packages=[f"txrocketmq.{p}" for part in PARTS for p in find_packages(include=[part, f"{part}.*"])],
    package_dir={f"txrocketmq.{part}": part for part in PARTS},
)
