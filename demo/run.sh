#!/usr/bin/env bash
# The main job on one machine, from nothing to faster models. `./dev demo` builds and calls it.
#
# usage: demo/run.sh BIN_DIR OUT_DIR
#
# What it leaves in OUT_DIR (and replaces if it is there):
#   packs/     the two packs, and nothing else
#   text/      their rules as text
#   keys/      the key pair that signed them, made for this demo
#   models/    the models, and the optimized ones beside them (NAME.DEVICE.onnx)
#   reports/   what each command reported, as JSON
#   pictures/  five rules, and one model before and after, as SVG
# Exit code 0 only if everything was as it must be.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bin=$(cd "${1:?usage: demo/run.sh BIN_DIR OUT_DIR}" && pwd)
mkdir -p "${2:?usage: demo/run.sh BIN_DIR OUT_DIR}"
out=$(cd "$2" && pwd)
die() { echo "demo: $*" >&2; exit 1; }

python=/usr/bin/python3
[[ -x $python ]] || python=python3
[[ -x $bin/tenon ]] || die "$bin/tenon is missing; ./dev build tenon makes it"
"$python" -c 'import onnx' 2>/dev/null ||
  die "python3-onnx, which makes the models, is missing; apt-get install python3-onnx"

bold='' dim='' plain=''
[[ -t 1 && -z ${NO_COLOR:-} ]] && bold=$'\e[1m' dim=$'\e[2m' plain=$'\e[0m'
say() { printf '%s\n' "$*"; }
title() { printf '\n%s== %s%s\n\n' "$bold" "$*" "$plain"; }
# Shows a command as one would type it, then runs it.
show() {
  printf '%s$ %s%s\n' "$dim" "$*" "$plain"
  "$@"
}
tenon() { "$bin/tenon" "$@"; }
# field FILE NAME: a field of a JSON report.
field() { "$python" -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$@"; }
# named PACK PATTERN: the name of the first rule of a pack whose text matches, or of its last one.
named() {
  tenon pack show "packs/$1.pack" --json - | "$python" -c '
import json, re, sys
rules = json.load(sys.stdin)["rules"]
found = [r["name"] for r in rules if re.search(sys.argv[1], r["text"])]
print((found or [rules[-1]["name"]])[0])' "$2"
}

cd "$out"
for folder in packs text keys models reports pictures; do
  rm -rf "${out:?}/$folder"
  mkdir "$folder"
done

title "1. Rules from nothing: enumerate, guess, prove, keep what the rest does not derive"
show tenon pack keygen --out keys/demo
for universe in matrix conv; do
  say
  show tenon generate --universe $universe --out packs/$universe.pack --key keys/demo \
    --json reports/generate_$universe.json
  tenon pack show packs/$universe.pack >text/$universe.rules
done
say
say "Each pack is one signed file; out/text has the rules as text. The shortest ones of matrix:"
sed -n '/^rule/,$p' text/matrix.rules | grep -v '^#' | sed -n '1,15s/^/    /p'
show tenon pack verify packs/matrix.pack packs/conv.pack --key keys/demo.pub

title "2. Rules of your own: proved for all sizes, or refuted by an example"
(cd "$root" &&
  show tenon prove demo/textbook.rules demo/wrong.rules --json "$out/reports/prove.json")

title "3. Models: three cases from a lecture at their real size, and a whole network"
"$python" "$root/tests/models/zoo.py" --out models --size full --only qkv,lora_x512,resnet_block
"$python" "$root/tests/models/zoo.py" --out models --size small --only resnet50_taso
models=(qkv lora_x512 resnet_block resnet50_taso)
for model in "${models[@]}"; do
  for device in h100 weak; do
    say
    show tenon optimize models/$model.onnx -o models/$model.$device.onnx \
      --pack packs/matrix.pack --pack packs/conv.pack --device roofline:$device \
      --alpha 1.5 --time-limit 10 --report reports/$model.$device.json
  done
done

title "4. Why a result is right: the proved rules that lead to it"
show tenon explain reports/resnet_block.h100.json --svg pictures/resnet_block.svg

title "5. Pictures"
number=0
while read -r pack pattern; do
  number=$((number + 1))
  rule=$(named "$pack" "$pattern")
  tenon pack show packs/$pack.pack --rule "$rule" --svg pictures/rule_$number.svg >/dev/null
  say "out/pictures/rule_$number.svg: $rule"
done <<'RULES'
matrix source +MatMul\([^()]*\), MatMul
matrix source +(MatMul\(\w, Add|Add\(MatMul)
conv Conv\(\w, Enlarge
conv residual=1, activation=relu
conv source +Conv\([^()]*\), Conv\(a
RULES
say "out/pictures/resnet_block.svg: the model of part 4 before and after"

title "Before and after, in microseconds on the device"
printf '    %-14s %-6s %10s %10s %9s   %s\n' model device before after speed-up 'relative error'
for model in "${models[@]}"; do
  for device in h100 weak; do
    report=reports/$model.$device.json
    awk -v m="$model" -v d="$device" -v b="$(field "$report" cost_before_us)" \
      -v a="$(field "$report" cost_after_us)" -v e="$(field "$report" max_relative_error)" \
      'BEGIN { printf "    %-14s %-6s %10.1f %10.1f %8.2fx   %.1e\n", m, d, b, a, b / a, e }'
  done
done
say
say "All of it is in $out. (${SECONDS} s)"
