// A seeded mix of npm redis's calls by several workers at once, as mix_redis_py.py does.
const load = require("module").createRequire(process.cwd() + "/");
const { createClient, defineScript } = load("redis");
const { version } = load("redis/package.json");
const { SIDES, port, resp, run } = require("./mix.cjs");

// Each client's ends in its name: who is first to load one that all have is chance.
const scripts = (name) => ({
  add: defineScript({
    SCRIPT: `redis.call('RPUSH', KEYS[1], ARGV[1]) return {KEYS[1], redis.call('LLEN', KEYS[1])} -- ${name}`,
    NUMBER_OF_KEYS: 1,
    parseCommand: (parser, key, text) => {
      parser.pushKey(key);
      parser.push(text);
    },
    transformReply: (reply) => reply,
  }),
});

async function connect(worker) {
  for (const side of SIDES) {
    const name = worker.name + side;
    const options = { socket: { port, host: "127.0.0.1" }, name, RESP: resp, scripts: scripts(name) };
    // XREAD in RESP3 has to be asked for.
    options.unstableResp3 = true;
    worker[side] = createClient(options);
    worker[side].on("error", (error) => worker.got.push(["error", String(error)]));
    await worker[side].connect();
  }
}

const leave = (worker) => Promise.all(SIDES.map((side) => worker[side].close()));

async function strings(worker) {
  const { a } = worker;
  const key = worker.key("s");
  await worker.call("set", a.set(key, worker.text()));
  await worker.call("get", a.get(key));
  await worker.call("incr", a.incr(worker.key("n")));
  await worker.call("mget", a.mGet([key, worker.key("s"), worker.key("none")]));
  await worker.call("wrong", a.lPush(key, "x"));
  await worker.call("expireat", a.expireAt(key, 4000000000));
}

async function structures(worker) {
  const { a } = worker;
  await worker.call("rpush", a.rPush(worker.key("l"), [worker.text(), "b"]));
  await worker.call("lrange", a.lRange(worker.key("l"), 0, 5));
  await worker.call("lpop", a.lPopCount(worker.key("l"), 2));
  await worker.call("hset", a.hSet(worker.key("h"), { f: worker.text(), g: "1" }));
  await worker.call("hgetall", a.hGetAll(worker.key("h")));
  await worker.call("zadd", a.zAdd(worker.key("z"), [{ score: 1.5, value: "a" }, { score: -2, value: "b" }]));
  await worker.call("zrange", a.zRangeWithScores(worker.key("z"), 0, -1));
  await worker.call("sadd", a.sAdd(worker.key("i"), String(worker.below(9))));
  await worker.call("smembers", a.sMembers(worker.key("i")));
}

async function pipeline(worker) {
  const { a } = worker;
  const all = [];
  for (let count = 1 + worker.below(20); count; count -= 1) {
    all.push(a.set(worker.key("s"), worker.text()), a.get(worker.key("s")), a.incr(worker.key("n")));
  }
  await worker.call("pipeline", Promise.all(all));
}

async function script(worker) {
  await worker.call("script", worker.a.add(worker.key("q"), worker.text()));
  await worker.call("eval", worker.a.eval("return {1, 'two', {3}}"));
  await worker.call("missing", worker.a.evalSha("f".repeat(40)));
  await worker.call("trim", worker.a.lTrim(worker.key("q"), 0, 3));
}

async function publishing(worker) {
  const { a, s } = worker;
  const channel = `${worker.name}:ch`;
  let heard = [];
  let told = () => {};
  const hear = (...all) => told(heard.push(all));
  await worker.call("subscribe", s.subscribe(channel, hear));
  await worker.call("psubscribe", s.pSubscribe(`${channel}*`, hear));
  for (let count = 1 + worker.below(4); count; count -= 1) {
    heard = [];
    const both = new Promise((resolve) => (told = (number) => number === 2 && resolve(heard)));
    await worker.call("publish", a.publish(channel, worker.text()));
    await worker.call("message", both);
  }
  await worker.call("unsubscribe", s.unsubscribe(channel));
  await worker.call("punsubscribe", s.pUnsubscribe(`${channel}*`));
}

async function stream(worker) {
  const { a, q } = worker;
  const key = `${worker.name}:x`;
  await worker.call("del", a.del(key));
  await worker.call("group", a.xGroupCreate(key, "g", "0", { MKSTREAM: true }));
  for (let number = 1, most = 1 + worker.below(3); number <= most; number += 1) {
    await worker.call("xadd", a.xAdd(key, `${number}-1`, { f: worker.text() }));
  }
  await worker.call("xread", a.xRead({ key, id: "0" }, { COUNT: 2 }));
  await worker.call("xreadgroup", a.xReadGroup("g", "me", { key, id: ">" }, { COUNT: 1 }));
  const waiting = worker.call("blocked", q.xRead({ key, id: "5-0" }, { BLOCK: 20000 }));
  await worker.call("late", a.xAdd(key, "9-1", { f: "late" }));
  await waiting;
  await worker.call("xack", a.xAck(key, "g", "1-1"));
  await worker.call("xrange", a.xRange(key, "-", "+"));
}

run(version, [strings, structures, pipeline, script, publishing, stream], connect, leave);
