# radp in a container, with PyTorch's CPU build:
#   docker build -t radp .
#   docker run --rm -v "$PWD/out:/out" radp demo --quick --out /out/demo
#   docker run --rm -v "$PWD/out:/out" radp simulate --planner radp-mini --scenarios sumo14-val --limit 14 --out /out/run
# The studio listens on the loopback device alone, so it is for use outside of containers.
FROM python:3.11-slim-bookworm

ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 NUMBA_CACHE_DIR=/var/cache/radp

WORKDIR /src
COPY constraints.txt pyproject.toml README.md LICENSE ./
RUN pip install -c constraints.txt --index-url "$TORCH_INDEX" torch
COPY src ./src
RUN pip install -c constraints.txt .

RUN useradd --uid 10001 --create-home radp && install -d -o radp -g radp /out /var/cache/radp
USER 10001
WORKDIR /out
ENTRYPOINT ["radp"]
CMD ["--help"]
