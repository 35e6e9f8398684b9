#!/usr/bin/env bash
# The main job on one machine, from nothing to faster models. `./dev demo` builds and calls it.
#
# usage: demo/run.sh BIN_DIR OUT_DIR
#
# What it leaves in OUT_DIR (and replaces if it is there):
#   packs/     the two packs, and nothing else
#   text/      their rules as text
#   models/    the models, and the optimized ones beside them (NAME.DEVICE.onnx)
#   reports/   what each command reported, as JSON
#   pictures/  five rules, and one model before and after, as SVG
# Exit code 0 only if everything was as it must be.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bin=$(cd "${1:?usage: demo/run.sh BIN_DIR OUT_DIR}" && pwd)
mkdir -p "${2:?usage: demo/run.sh BIN_DIR OUT_DIR}"
out=$(cd "$2" && pwd)
python=/usr/bin/python3
[[ -x $python ]] || python=python3
[[ -x $bin/tenon ]] || { echo "demo: $bin/tenon is missing: ./dev build tenon makes it" >&2; exit 1; }
"$python" -c 'import onnx' 2>/dev/null ||
  { echo "demo: python3-onnx is missing, it makes the models: apt-get install python3-onnx" >&2; exit 1; }

if [[ -t 1 && -z ${NO_COLOR:-} ]]; then bold=$'\e[1m' dim=$'\e[2m' plain=$'\e[0m'; else bold='' dim='' plain=''; fi
title() { printf '\n%s== %s%s\n' "$bold" "$*" "$plain"; }
say() { printf '%s\n' "$*"; }
# Shows a command as one would type it, then runs it.
show() {
  local word shown=()
  for word in "$@"; do shown+=("${word/#$out\//out/}"); done
  printf '%s$ %s%s\n' "$dim" "${shown[*]/#$root\//}" "$plain"
  "$@"
}
tenon() { "$bin/tenon" "$@"; }
# field FILE NAME: a field of a JSON report.
field() { "$python" -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$@"; }

cd "$out"
for folder in packs text models reports pictures; do
  rm -rf "${out:?}/$folder"
  mkdir "$folder"
done

title "1. Rules from nothing: enumerate, guess, prove, keep what the rest does not derive"
for universe in matrix conv; do
  show tenon generate --universe $universe --out packs/$universe.pack \
    --json reports/generate_$universe.json
  tenon pack show packs/$universe.pack >text/$universe.rules
  say
done
say "Each pack is one signed file; its rules as text are in out/text. The first ones of matrix:"
grep -v '^#' text/matrix.rules | sed -n '/^rule/,$p' | sed -n '1,14s/^/    /p'
show tenon pack verify packs/matrix.pack packs/conv.pack

title "2. Rules of your own: proved for all sizes, or refuted by an example"
show tenon prove "$root/demo/textbook.rules" "$root/demo/wrong.rules" --json reports/prove.json

title "3. Models: three cases from lectures at their real size, and a whole network"
"$python" "$root/tests/models/zoo.py" --out models --size full --only qkv,lora_x512,resnet_block
"$python" "$root/tests/models/zoo.py" --out models --size small --only squeezenet11
for model in qkv lora_x512 resnet_block squeezenet11; do
  for device in h100 weak; do
    say
    show tenon optimize models/$model.onnx -o models/$model.$device.onnx \
      --pack packs/matrix.pack --pack packs/conv.pack --device roofline:$device \
      --alpha 1.5 --time-limit 20 --report reports/$model.$device.json
  done
done

title "4. Why the result is right"
show tenon explain reports/qkv.h100.json

title "5. Pictures"
show tenon explain reports/resnet_block.h100.json --svg pictures/resnet_block.svg >/dev/null
for number in 1 2 3 4 5; do
  pack=matrix
  ((number > 3)) && pack=conv
  name=$(sed -n 's/^rule //p' text/$pack.rules | sed -n "${number}p")
  tenon pack show packs/$pack.pack --rule "$name" --svg "pictures/rule_$number.svg" >/dev/null
done
ls pictures | sed 's/^/    /'

title "Before and after, in microseconds on the device"
printf '    %-14s %-6s %10s %10s %8s  %s\n' model device before after speedup 'largest relative error'
for model in qkv lora_x512 resnet_block squeezenet11; do
  for device in h100 weak; do
    report=reports/$model.$device.json
    before=$(field "$report" cost_before_us) after=$(field "$report" cost_after_us)
    awk -v m=$model -v d=$device -v b="$before" -v a="$after" \
      -v e="$(field "$report" max_relative_error)" \
      'BEGIN { printf "    %-14s %-6s %10.1f %10.1f %7.2fx  %.1e\n", m, d, b, a, b / a, e }'
  done
done
say
say "All of it is in $out: packs, text, models, reports, pictures. (${SECONDS} s)"
