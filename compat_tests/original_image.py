# SPDX-License-Identifier: Apache-2.0
"""The original's image, which contains its proxy: pulled, or built where no registry is reached.

An image that is built has the jars of the release in the places, with the user and the environment
of the published image. Its start script only runs Java, the same Java as in other tests, while the
published image has Java 8. It has a name of its own, so nobody takes it for the published one.
"""

import json
import shutil
import tempfile
from pathlib import Path

from docker.errors import BuildError, DockerException, ImageNotFound

from compat_tests.cache import exclusive
from compat_tests.debian import Say
from compat_tests.docker_engine import JAVA, DockerEngine, EngineUnavailable
from compat_tests.jars import RELEASES, resolve

RELEASE = RELEASES[-1]
PULLED = f"apache/rocketmq:{RELEASE}"
MADE = f"txrocketmq-original:{RELEASE}"

_DOCKERFILE = f"""
FROM {JAVA.name}
RUN echo "rocketmq:x:3000:" >> /etc/group \\
    && echo "rocketmq:x:3000:3000::/home/rocketmq:/bin/sh" >> /etc/passwd \\
    && mkdir -p /home/rocketmq \\
    && chown 3000:3000 /home/rocketmq
ENV ROCKETMQ_VERSION={RELEASE} ROCKETMQ_HOME=/home/rocketmq/rocketmq-{RELEASE} HOME=/home/rocketmq
COPY --chown=3000:3000 original $ROCKETMQ_HOME
USER 3000:3000
WORKDIR $ROCKETMQ_HOME/bin
ENTRYPOINT ["./docker-entrypoint.sh"]
CMD ["dummy"]
"""
_SCRIPTS = {
    "docker-entrypoint.sh": '#!/bin/sh\nexec "$@"\n',
    "mqproxy": (
        "#!/bin/sh\n"
        'java $JAVA_OPT_EXT -cp "$ROCKETMQ_HOME/conf:$ROCKETMQ_HOME/lib/*"'
        ' org.apache.rocketmq.proxy.ProxyStartup "$@"\n'
    ),
}


def original_image(engine: DockerEngine, say: Say) -> str:
    """Returns the name of an image in the engine. Raises EngineUnavailable, JarsUnavailable."""
    with exclusive("original"):
        if _is_published_image_there(engine, say):
            return PULLED
        engine.see_to(JAVA, say)
        with tempfile.TemporaryDirectory() as folder:
            _write_context(Path(folder))
            say(f"building {MADE} on {JAVA.name}")
            try:
                engine.client.images.build(
                    path=folder, tag=MADE, network_mode="none", rm=True, forcerm=True
                )
            except (BuildError, DockerException) as error:
                raise EngineUnavailable(f"{MADE} cannot be built: {error}") from error
    return MADE


def _is_published_image_there(engine: DockerEngine, say: Say) -> bool:
    try:
        try:
            engine.client.images.get(PULLED)
        except ImageNotFound:
            say(f"pulling {PULLED}")
            engine.client.images.pull(PULLED)
    except DockerException as error:
        say(f"no image registry can be reached ({str(error)[:100]}...)")
        return False
    return True


def _write_context(folder: Path) -> None:
    home = folder / "original"
    shutil.copytree(resolve(RELEASE, "proxy"), home / "lib")
    (home / "conf").mkdir()
    settings = {"rocketMQClusterName": "DefaultCluster"}
    (home / "conf" / "rmq-proxy.json").write_text(json.dumps(settings))
    (home / "bin").mkdir()
    for name, text in _SCRIPTS.items():
        script = home / "bin" / name
        script.write_text(text)
        script.chmod(0o755)
    (folder / "Dockerfile").write_text(_DOCKERFILE)
