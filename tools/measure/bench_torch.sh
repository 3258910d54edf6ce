#!/bin/sh
# bench_torch.sh - runs bench_torch.py in build/venv-torch, which it makes on first use.
#
# PyPI's torch for Linux is built with CUDA and does not load without some of NVIDIA's libraries, even
# where there is no GPU. Those it links are installed (4.4 GB with torch); triton, cuSOLVER, NVRTC and
# NVTX, which the CPU never loads, are not. torch 2.7.1 is the version that openpi pins.
# Usage: tools/measure/bench_torch.sh [options of bench_torch.py]; PYTHON names the interpreter (3.10 to 3.13).
set -eu
cd "$(dirname "$0")/.."
venv=build/venv-torch

if [ ! -e $venv/complete ]; then
    mkdir -p build
    nice "${PYTHON:-python3}" -m venv $venv
    nice $venv/bin/pip install --quiet --no-cache-dir --no-deps \
        torch==2.7.1 numpy==1.26.4 safetensors==0.5.3 typing_extensions==4.16.0 sympy==1.14.0 \
        mpmath==1.3.0 networkx==3.6.1 Jinja2==3.1.6 MarkupSafe==3.0.4 fsspec==2026.9.0 filelock==4.2.11 \
        nvidia-cuda-runtime-cu12==12.6.77 nvidia-cuda-cupti-cu12==12.6.80 nvidia-cufile-cu12==1.11.1.6 \
        nvidia-cublas-cu12==12.6.4.1 nvidia-cudnn-cu12==9.5.1.17 nvidia-cufft-cu12==11.3.0.4 \
        nvidia-curand-cu12==10.3.7.77 nvidia-cusparse-cu12==12.5.4.2 nvidia-cusparselt-cu12==0.6.3 \
        nvidia-nccl-cu12==2.26.2 nvidia-nvjitlink-cu12==12.6.85
    $venv/bin/python -c 'import torch, safetensors'
    touch $venv/complete
fi

# Large pages for weights (madvise): torch does not ask for them by itself.
THP_MEM_ALLOC_ENABLE="${THP_MEM_ALLOC_ENABLE:-1}" exec $venv/bin/python tools/measure/bench_torch.py "$@"
