// Times pairs of models in ONNX Runtime, one thread, in turns.
//
// usage: node runtime.js ORIGINAL.onnx OPTIMIZED.onnx LEVEL PAIRS
// LEVEL is ONNX Runtime's graph optimization level: all or disabled. Prints one JSON line:
// {"pairs": [[original, optimized], ..]}, CPU microseconds of this process for one run of each.
//
// The models of a pair run right after each other, in an order that alternates; short ones run
// several times for one sample. CPU time and not the wall's, because there is one thread and the
// machine may have other things to do.
'use strict';
const ort = require('onnxruntime-node');

const SAMPLE_US = 3000;
const WARM_UP_US = 100000;

function tensor(input, random) {
  const dims = input.shape.map((d) => (typeof d === 'number' && d > 0 ? d : 1));
  const count = dims.reduce((a, b) => a * b, 1);
  if (input.type === 'int64') return new ort.Tensor('int64', new BigInt64Array(count), dims);
  if (input.type !== 'float32') throw new Error(`input ${input.name} is ${input.type}`);
  return new ort.Tensor('float32', Float32Array.from({length: count}, random), dims);
}

function feedsOf(session) {
  let x = 7;
  const random = () => {
    x = (Math.imul(x, 1664525) + 1013904223) >>> 0;
    return x / 2147483648 - 1;
  };
  return Object.fromEntries(session.inputMetadata.map((i) => [i.name, tensor(i, random)]));
}

function cpuMicroseconds() {
  const used = process.cpuUsage();
  return used.user + used.system;
}

async function time(session, feeds, runs) {
  const start = cpuMicroseconds();
  for (let k = 0; k < runs; ++k) await session.run(feeds);
  return (cpuMicroseconds() - start) / runs;
}

async function main() {
  const [original, optimized, level, pairs] = process.argv.slice(2);
  const open = (path) => ort.InferenceSession.create(path, {
    graphOptimizationLevel: level,
    intraOpNumThreads: 1,
    interOpNumThreads: 1,
    executionMode: 'sequential',
    logSeverityLevel: 3,
  });
  const sessions = [await open(original), await open(optimized)];
  const feeds = feedsOf(sessions[0]);
  let slower = 0;
  for (const session of sessions) {
    let spent = 0;
    for (let runs = 0; runs < 3 || spent < WARM_UP_US; ++runs) spent += await time(session, feeds, 1);
    slower = Math.max(slower, await time(session, feeds, 3));
  }
  const runs = Math.max(1, Math.ceil(SAMPLE_US / slower));
  const measured = [];
  for (let k = 0; k < Number(pairs); ++k) {
    const pair = [0, 0];
    for (const which of k % 2 === 0 ? [0, 1] : [1, 0]) {
      pair[which] = await time(sessions[which], feeds, runs);
    }
    measured.push(pair);
  }
  console.log(JSON.stringify({pairs: measured}));
}

main().catch((error) => {
  console.error(String(error.message || error));
  process.exit(1);
});
