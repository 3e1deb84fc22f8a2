// What the two programs for Node have in common: a seeded chance, workers that each do one thing after the other, and rounds that
// both clients' calls are alike in.
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

// Clients of a worker: `a` and `b` for commands, `s` for subscriptions, `q` for what waits.
const SIDES = ["a", "b", "s", "q"];

// Call what npm redis calls rPush and ioredis calls rpush.
const does = (client, name, ...args) => (name in client ? client[name] : client[name.toLowerCase()]).apply(client, args);

async function transaction(worker) {
  const { a, b } = worker;
  const key = worker.key("n");
  await worker.call("watch", a.watch(key));
  const before = await worker.call("get", a.get(key));
  if (worker.draw() < 0.3) await worker.call("other", b.incr(key));
  const multi = does(a.multi().set(key, String(Number(before || 0) + 1)), "rPush", worker.key("l"), worker.text());
  await worker.call("exec", multi.incr(worker.key("n")).exec());
}

async function blocking(worker) {
  const { a, q } = worker;
  const key = `${worker.name}:b`;
  for (const how of ["blPop", "brPop"]) {
    const waiting = worker.call("popped", does(q, how, key, 20));
    await worker.call("push", does(a, "rPush", key, worker.text()));
    await waiting;
  }
  await worker.call("in vain", does(q, "blPop", [key, worker.key("none")], 0.02));
}

// Run workers with these kinds of rounds and those above; `connect` gives a worker its clients, `leave` ends them.
async function run(version, own, connect, leave) {
  const kinds = [...own, transaction, blocking];
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

module.exports = { SIDES, port, resp, run };
