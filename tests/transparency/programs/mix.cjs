// What the two programs for Node have in common: a seeded chance, and workers that each do one thing after the other.
const [port, seed, workers, rounds, resp] = process.argv.slice(2).map(Number);

// mulberry32 over a hash of the text: the same draws for the same seed.
function chance(text) {
  let state = [...text].reduce((sum, letter) => Math.imul(sum ^ letter.charCodeAt(0), 16777619), 2166136261);
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

class Worker {
  constructor(number) {
    this.name = `w${number}`;
    this.draw = chance(`${seed}/${number}`);
    this.got = [];
  }
  below(most) {
    return Math.floor(this.draw() * most);
  }
  pick(list) {
    return list[this.below(list.length)];
  }
  key(kind) {
    return `${this.name}:${kind}:${1 + this.below(3)}`;
  }
  text() {
    return this.pick(["", "héllo 🎉", "\r\n"]) + this.pick(["x", "y"]).repeat(this.pick([0, 3, 40, 40, 700, 9000]));
  }
  // Wait for what a call gives, and take it down.
  async call(what, promise) {
    let value;
    try {
      value = await promise;
    } catch (error) {
      value = `${error.constructor.name}: ${error.message}`;
    }
    this.got.push([what, JSON.stringify(value === undefined ? null : value)]);
    return value;
  }
}

// Run workers with these kinds of rounds; `connect` gives a worker its clients, `leave` ends them.
async function run(version, kinds, connect, leave) {
  const all = Array.from({ length: workers }, (_, number) => new Worker(number));
  await Promise.all(all.map(connect));
  await Promise.all(
    all.map(async (worker) => {
      for (let round = 0; round < rounds; round += 1) await worker.pick(kinds)(worker);
    }),
  );
  await Promise.all(all.map(leave));
  // Which of two calls at once is taken down first is chance.
  console.log(JSON.stringify({ version, got: Object.fromEntries(all.map((each) => [each.name, each.got.sort()])) }));
}

module.exports = { port, resp, run };
