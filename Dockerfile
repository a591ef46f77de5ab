# What the bot needs is installed in a stage of its own: no pip, cache or compiler of it comes into the image.
FROM python:3.11-slim AS build

ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python -m venv --without-pip /venv
WORKDIR /app
COPY . .
# What MCP_CONFIG needs; what some providers of models and OpenTelemetry need besides: docs/models.md, docs/deploy.md.
ARG EXTRAS=mcp
# The bot itself runs from /app, and is installed as what stands there, so that /metrics knows its version. All is compiled
# here, since nothing can be written there later.
RUN pip --python /venv/bin/python install --constraint constraints.txt --editable ".[$EXTRAS]" \
    && rm -rf build ./*.egg-info pyproject.toml constraints.txt \
    && find /venv -type d -name tests -prune -exec rm -rf {} + \
    && python -m compileall -q . \
    && mkdir --mode=700 .parley

FROM python:3.11-slim

ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PORT=8080
# Its home is the one folder beside the volume in which programs that MCP_CONFIG starts may write.
RUN useradd --uid 10001 --no-create-home --home-dir /tmp parley
COPY --from=build /venv /venv
COPY --from=build /app /app
RUN chown parley /app/.parley
WORKDIR /app
USER parley
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s CMD ["python", "-c", "import http.client, os; http = http.client.HTTPConnection('127.0.0.1', os.environ['PORT'], timeout=5); http.request('GET', '/healthz'); raise SystemExit(http.getresponse().status != 200)"]
# Without a shell in between: python itself gets SIGTERM and has time to finish its answers.
CMD ["python", "bot.py"]
