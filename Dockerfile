# SPDX-License-Identifier: Apache-2.0
# The image txrocketmq: a name server, a broker, or both; docs/testing.md and README.md say how to run it.
#
#     make image                                   # makes the wheel in dist/ and builds this
#     docker buildx build --platform linux/amd64,linux/arm64 -t txrocketmq .
#
# Without settings, everybody who reaches a published port may do everything: the image starts standalone with --open.
# docs/security.md says how clients come to need an account.
#
# BASE is any image with glibc, Python 3.11 or later as python3, and the module venv. Nothing is compiled: pip installs
# only wheels, which exist for the usual platforms. If dist/ also contains wheels of dependencies, they take precedence
# over those of the package index; with --build-arg PIP_NO_INDEX=1 the index is not used at all. The tests that
# libraries bring with them, a third of everything that is installed, are removed, and so is the form of zstandard that
# only PyPy uses, 12 MB.
ARG BASE=python:3.13-slim

FROM ${BASE} AS install
ARG PIP_NO_INDEX
ARG PIP_INDEX_URL
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
COPY dist/*.whl /wheels/
RUN python3 -m venv /opt/txrocketmq \
    && /opt/txrocketmq/bin/pip install --only-binary :all: --find-links /wheels 'txrocketmq[grpc]' \
    && /opt/txrocketmq/bin/pip uninstall --yes setuptools pip \
    && find /opt/txrocketmq/lib -depth -type d \( -name test -o -name tests \) -exec rm -r {} + \
    && find /opt/txrocketmq/lib -path '*/zstandard/*cffi*' -delete

FROM ${BASE}
LABEL org.opencontainers.image.title="txrocketmq" \
      org.opencontainers.image.description="Apache RocketMQ's name server, broker and proxy in Python on Twisted" \
      org.opencontainers.image.licenses="Apache-2.0"
# User, home and the place of the store are those of the original's image, so that either can use the other's volume.
RUN echo "rocketmq:x:3000:" >> /etc/group \
    && echo "rocketmq:x:3000:3000::/home/rocketmq:/usr/sbin/nologin" >> /etc/passwd \
    && mkdir -p /home/rocketmq/store /home/rocketmq/conf /etc/rocketmq \
    && chown -R 3000:3000 /home/rocketmq
COPY --from=install /opt/txrocketmq /opt/txrocketmq
ENV PATH=/opt/txrocketmq/bin:$PATH HOME=/home/rocketmq PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER 3000:3000
WORKDIR /home/rocketmq
VOLUME /home/rocketmq/store
# Name server; broker, its VIP port; gRPC.
EXPOSE 9876 10911 10909 8081
STOPSIGNAL SIGTERM
# A server that does not answer fails the check after 5 s. The timeout leaves room for starting Python, which takes a
# fraction of a second, but more than 10 s under an emulator of another processor.
HEALTHCHECK --interval=10s --timeout=60s --start-period=120s --retries=3 \
    CMD ["python3", "-m", "txrocketmq.cli.servers.health"]
ENTRYPOINT ["python3", "-m", "txrocketmq.cli.servers.container"]
