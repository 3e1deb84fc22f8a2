ARG BASE=python:3.12-slim

FROM ${BASE} AS build
WORKDIR /src
# The base's pip installs into the environment from outside, so none ends up in it.
RUN python -m venv --without-pip /opt/chaosproxy
COPY . .
# Bytecode goes in too: 4 MB for a start that is a quarter shorter, as the image's user cannot write any.
RUN python -m pip --python /opt/chaosproxy/bin/python install --no-cache-dir '.[embedded,fast]'

FROM ${BASE}
COPY --from=build /opt/chaosproxy /opt/chaosproxy
# Data is for everybody on the network; control is for this container alone until there is a token.
ENV PATH=/opt/chaosproxy/bin:$PATH \
    CHAOSPROXY_LISTEN=0.0.0.0:6380 \
    CHAOSPROXY_CONTROL=:9380
EXPOSE 6380 9380
# A number, so that an orchestrator can see that it is not root.
USER 10001:10001
HEALTHCHECK --interval=10s --timeout=5s --start-period=5s \
    CMD ["python", "-m", "chaosproxy.healthcheck"]
ENTRYPOINT ["chaosproxy"]
CMD ["run"]
