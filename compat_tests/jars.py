# SPDX-License-Identifier: Apache-2.0
"""The official jars: RocketMQ's clients and servers as Maven artifacts, downloaded into a cache.

Each release has two folders of jars, ``client`` (rocketmq-client and rocketmq-tools) and ``server``
(rocketmq-namesrv and rocketmq-broker), with all their dependencies; 5.4.0 has the gRPC proxy, too,
and 5.5.0 has servers alone. A folder is filled under another name and then renamed, so an
interrupted download is never taken for a complete one.
"""

import shutil
import subprocess
from pathlib import Path

from compat_tests.cache import cache_root, exclusive

RELEASES = ("4.9.7", "5.4.0")
"""The RocketMQ releases that the tests compare with."""

SERVERS = {**dict(zip(RELEASES, RELEASES, strict=True)), "5.5.0": "5.4.0"}
"""The releases that can be the servers under test, and those after which they are expected to do.

The last one is for scenarios with gRPC clients; README.md says which others differ there.
"""

ARTIFACTS = {
    "client": ("rocketmq-client", "rocketmq-tools"),
    "server": ("rocketmq-namesrv", "rocketmq-broker"),
    "proxy": ("rocketmq-proxy",),
}

GRPC_CLIENT = "5.2.0"
"""The gRPC client for Java, which has releases of its own."""

_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>txrocketmq</groupId>
  <artifactId>compat-{name}</artifactId>
  <version>1</version>
  <dependencies>
{dependencies}  </dependencies>
</project>
"""

_DEPENDENCY = """    <dependency>
      <groupId>{group}</groupId>
      <artifactId>{artifact}</artifactId>
      <version>{version}</version>
    </dependency>
"""

_COMPILER = ("org.eclipse.jdt", "ecj", "3.33.0")
_RESOLVE_TIMEOUT_S = 600


class JarsUnavailable(Exception):
    """The official jars are not in the cache and cannot be fetched; the message says why."""


def resolve(release: str, kind: str) -> Path:
    """Returns the folder of a release's jars; ``kind`` is ``client``, ``server`` or ``proxy``.

    Raises JarsUnavailable, with one sentence, when Maven is missing or fails.
    """
    wanted = [("org.apache.rocketmq", artifact, release) for artifact in ARTIFACTS[kind]]
    return _copy_into(f"{release}-{kind}", wanted)


def grpc_client() -> Path:
    """Returns the folder of jars of the gRPC client, and of what our program needs to read JSON."""
    client = ("org.apache.rocketmq", "rocketmq-client-java", GRPC_CLIENT)
    return _copy_into(f"grpc-{GRPC_CLIENT}", [client, ("com.alibaba", "fastjson", "1.2.83")])


def with_testcontainers() -> Path:
    """Returns the folder of jars of Testcontainers with the client of the first release."""
    client = ("org.apache.rocketmq", "rocketmq-client", RELEASES[0])
    return _copy_into(
        "testcontainers", [client, ("org.testcontainers", "testcontainers", "1.21.3")]
    )


def compiler() -> Path:
    """Returns the jar of a compiler that needs only a Java runtime (Eclipse's ecj)."""
    return next(_copy_into("compiler", [_COMPILER]).glob("ecj-*.jar"))


def _copy_into(name: str, wanted: list[tuple[str, str, str]]) -> Path:
    """Returns the cached folder of these artifacts (group, artifact, version) and dependencies."""
    folder = cache_root() / "jars" / name
    with exclusive("jars"):
        if not folder.is_dir():
            _fetch(name, wanted, folder)
    return folder


def _fetch(name: str, wanted: list[tuple[str, str, str]], folder: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise JarsUnavailable(
            f"the {name} jars are not in {folder} and Maven (mvn), which would fetch them, is not "
            "installed"
        )
    fresh = folder.with_name(f"{name}.partial")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    pom = fresh / "pom.xml"
    pom.write_text(_pom(name, wanted))
    copied = fresh / "jars"
    command = [
        *(maven, "-B", "-q", "-f", str(pom), "dependency:copy-dependencies"),
        *("-DincludeScope=runtime", f"-DoutputDirectory={copied}"),
    ]
    try:
        subprocess.run(
            command, check=True, capture_output=True, text=True, timeout=_RESOLVE_TIMEOUT_S
        )
        copied.rename(folder)
    except subprocess.CalledProcessError as error:
        raise JarsUnavailable(
            f"Maven cannot fetch the {name} jars: {error.stdout[-2000:]}"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise JarsUnavailable(f"Maven cannot fetch the {name} jars in time: {error}") from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _pom(name: str, wanted: list[tuple[str, str, str]]) -> str:
    dependencies = "".join(
        _DEPENDENCY.format(group=group, artifact=artifact, version=version)
        for group, artifact, version in wanted
    )
    return _POM.format(name=name, dependencies=dependencies)
