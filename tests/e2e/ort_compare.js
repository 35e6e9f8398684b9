// Runs two models on the same random inputs in ONNX Runtime with its optimizations disabled, and says
// how far their outputs are apart.
//
// usage: node ort_compare.js ORIGINAL.onnx OTHER.onnx [SEED]
// Prints one JSON line: {"max_relative_error": E, "outputs": N} or {"error": "..."} with exit code 1.
// The error of an element is |a - b| / max(|a|, |b|, the root mean square of the output). An element
// that is not a number in one of them only counts as infinitely far.
'use strict';
const ort = require('onnxruntime-node');

function generator(seed) {  // xorshift32: the same numbers everywhere.
  let x = seed >>> 0 || 1;
  return () => {
    x ^= x << 13;
    x >>>= 0;
    x ^= x >>> 17;
    x ^= x << 5;
    x >>>= 0;
    return x / 4294967296;
  };
}

function feedsOf(session, seed) {
  const random = generator(seed);
  const feeds = {};
  for (const input of session.inputMetadata) {
    if (input.type !== 'float32') throw new Error(`input ${input.name} is ${input.type}`);
    const dims = input.shape.map((d) => (typeof d === 'number' && d > 0 ? d : 1));
    const data = new Float32Array(dims.reduce((a, b) => a * b, 1));
    for (let k = 0; k < data.length; ++k) data[k] = random() * 2 - 1;
    feeds[input.name] = new ort.Tensor('float32', data, dims);
  }
  return feeds;
}

async function open(path) {
  return ort.InferenceSession.create(path, {
    graphOptimizationLevel: 'disabled',
    intraOpNumThreads: 1,
    interOpNumThreads: 1,
    executionMode: 'sequential',
    logSeverityLevel: 3,
  });
}

function distance(a, b) {
  let squares = 0;
  for (const v of a) squares += v * v;
  const scale = Math.sqrt(squares / Math.max(1, a.length));
  let worst = 0;
  for (let k = 0; k < a.length; ++k) {
    if (Number.isNaN(a[k]) && Number.isNaN(b[k])) continue;
    if (a[k] === b[k]) continue;
    const size = Math.max(Math.abs(a[k]), Math.abs(b[k]), scale);
    const error = Math.abs(a[k] - b[k]) / size;
    worst = Math.max(worst, Number.isNaN(error) ? Infinity : error);
  }
  return worst;
}

async function main() {
  const [original, other, seed] = process.argv.slice(2);
  const first = await open(original);
  const feeds = feedsOf(first, Number(seed || 7));
  const expected = await first.run(feeds);
  const second = await open(other);
  if (second.outputNames.join() !== first.outputNames.join()) {
    throw new Error(`outputs are ${second.outputNames}, not ${first.outputNames}`);
  }
  const actual = await second.run(feeds);
  let worst = 0;
  for (const name of first.outputNames) {
    if (actual[name].dims.join() !== expected[name].dims.join()) {
      throw new Error(`output ${name} is [${actual[name].dims}], not [${expected[name].dims}]`);
    }
    worst = Math.max(worst, distance(expected[name].data, actual[name].data));
  }
  const printed = Number.isFinite(worst) ? worst : 1e300;
  console.log(JSON.stringify({max_relative_error: printed, outputs: first.outputNames.length}));
}

main().catch((error) => {
  console.log(JSON.stringify({error: String(error.message || error)}));
  process.exit(1);
});
