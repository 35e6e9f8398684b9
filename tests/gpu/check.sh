#!/usr/bin/env bash
# Everything that needs a GPU, in a few minutes: builds what it takes, runs the tests on the CUDA
# module, and optimizes five networks at costs measured on the GPU.
#
# usage: tests/gpu/check.sh [WORK_DIR]     (default: out/gpu)
#
# Needs nvcc, cuDNN, a GPU, and what deploy/packages/{build,test}.txt list. Ends with a table as
# Markdown, also in WORK_DIR/table.md. Exit code 0: all tests passed and no network became dearer;
# 2: there is no GPU.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root"
work=${1:-out/gpu}
networks=resnet50_taso,resnext50_taso,nasnet_a_1cell,nasrnn,bert_base
say() { printf '[%4ds] %s\n' "$SECONDS" "$*"; }
die() { printf 'check.sh: %s\n' "$1" >&2; exit "${2:-1}"; }

nvidia-smi -L 2>/dev/null || die "there is no GPU that nvidia-smi knows of" 2
mkdir -p "$work"
say "configure"
cmake --preset dev >"$work/configure.txt" || die "configuring failed: see $work/configure.txt"
! grep '^\*\*' "$work/configure.txt" || die "CUDA or cuDNN is left out"
say "build"
cmake --build build --target tenon tenon_cuda gpu_test gpu_twin_test >"$work/build.txt" ||
  die "the build failed: see $work/build.txt"

say "tests"
build/test-bin/gpu_twin_test
build/test-bin/gpu_test

say "networks"
/usr/bin/python3 tests/models/zoo.py --out "$work" --size full --only "$networks" >/dev/null
packs=()
for universe in matrix conv; do
  pack=$work/$universe.pack
  [[ -f $pack ]] || build/bin/tenon generate --universe "$universe" --out "$pack" >/dev/null
  packs+=(--pack "$pack")
done
field() { /usr/bin/python3 -c 'import json, sys
print("%.1f" % json.load(open(sys.argv[1]))[sys.argv[2]])' "$@"; }
printf '%s\n' '| network | before, us | after, us | ratio |' '| --- | ---: | ---: | ---: |' \
  >"$work/table.md"
for network in ${networks//,/ }; do
  say "$network"
  build/bin/tenon profile "$work/$network.onnx" --device cuda --cost-cache "$work/costs"
  build/bin/tenon optimize "$work/$network.onnx" -o "$work/$network.optimized.onnx" \
    "${packs[@]}" --device cuda --cost-cache "$work/costs" --time-limit 20 \
    --check-time-limit 20 --report "$work/$network.json"
  before=$(field "$work/$network.json" cost_before_us)
  after=$(field "$work/$network.json" cost_after_us)
  awk -v n="$network" -v b="$before" -v a="$after" 'BEGIN {
    printf "| %s | %s | %s | %.3f |\n", n, b, a, a / b; exit a > b }' >>"$work/table.md" ||
    die "$network became dearer"
done
say "done"
cat "$work/table.md"
