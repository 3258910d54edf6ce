#!/bin/sh
# every_tensor.t - what a golden case expects is compared, all of it: `tectum verify` fails copies of a case of
# every kind with one tensor more and with each tensor changed, see every_tensor.py. usage: tests/every_tensor.t [PROGRAM]
. "$(dirname "$0")/opening.sh"
cd tests/golden || exit 1
PYTHONDONTWRITEBYTECODE=1 python3 ../every_tensor.py "$T" "$W" act/odd act/base_queue act/odd_ensemble \
    demo/episodes encoders/minilm_tiny encoders/mpnet_odd groot/n15_tiny groot/n15_tiny_lerobot groot/n16_tiny \
    groot/prepost groot/time images/decode images/preprocess images/resize keep/tiny openvla/actionflow openvla/odd \
    openvla/oft openvla/preproc openvla/tiny openvla/vocab32k pi/pi05_odd pi/pi05_odd_frames pi/pi05_odd_lang \
    pi/pi05_odd_lerobot pi/pi0_tiny pi/prepost pi/time qwen/awq_g32_odd qwen/gptq_g64_actorder_odd qwen/tiny \
    safetensors/conversions safetensors/sharded smolvla/base_queue smolvla/base_rtc smolvla/odd text/gemma2_tiny \
    text/smolvlm_tiny ../fixtures/groot/n17_tiny
