FROM python:3.11-slim

ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN useradd --create-home --uid 10001 parley
WORKDIR /app
COPY . .
# What MCP_CONFIG needs; what some providers of models need besides: docs/models.md.
ARG EXTRAS=mcp
RUN pip install --constraint constraints.txt ".[$EXTRAS]" && rm -rf build ./*.egg-info \
    && mkdir --mode=700 .parley && chown parley .parley
USER parley
# Without a shell in between: python itself gets SIGTERM and has time to finish its answers.
CMD ["python", "bot.py"]
