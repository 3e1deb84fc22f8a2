// A seeded mix of ioredis's calls by several workers at once, as mix_redis_py.py does.
const load = require("module").createRequire(process.cwd() + "/");
const Redis = load("ioredis");
const { version } = load("ioredis/package.json");
const { SIDES, port, run } = require("./mix.cjs");

// Each client's ends in its name: who is first to load one that all have is chance.
const ADD = "redis.call('RPUSH', KEYS[1], ARGV[1]) return {KEYS[1], redis.call('LLEN', KEYS[1])}";

function make(name) {
  const client = new Redis({ port, host: "127.0.0.1", connectionName: name });
  client.defineCommand("add", { numberOfKeys: 1, lua: `${ADD} -- ${name}` });
  return client;
}

async function connect(worker) {
  for (const side of SIDES) worker[side] = make(worker.name + side);
  await Promise.all(SIDES.map((side) => worker[side].ping()));
}

const leave = (worker) => Promise.all(SIDES.map((side) => worker[side].quit()));

async function strings(worker) {
  const { a } = worker;
  const key = worker.key("s");
  await worker.call("set", a.set(key, worker.text()));
  await worker.call("get", a.get(key));
  await worker.call("buffer", a.getBuffer(key));
  await worker.call("incr", a.incr(worker.key("n")));
  await worker.call("mget", a.mget(key, worker.key("s"), worker.key("none")));
  await worker.call("wrong", a.lpush(key, "x"));
  await worker.call("expireat", a.expireat(key, 4000000000));
}

async function structures(worker) {
  const { a } = worker;
  await worker.call("rpush", a.rpush(worker.key("l"), worker.text(), "b"));
  await worker.call("lrange", a.lrange(worker.key("l"), 0, 5));
  await worker.call("lpop", a.lpop(worker.key("l"), 2));
  await worker.call("hset", a.hset(worker.key("h"), { f: worker.text(), g: 1 }));
  await worker.call("hgetall", a.hgetall(worker.key("h")));
  await worker.call("zadd", a.zadd(worker.key("z"), 1.5, "a", -2, "b"));
  await worker.call("zrange", a.zrange(worker.key("z"), 0, -1, "WITHSCORES"));
  await worker.call("sadd", a.sadd(worker.key("i"), worker.below(9)));
  await worker.call("smembers", a.smembers(worker.key("i")));
}

async function pipeline(worker) {
  const pipe = worker.a.pipeline();
  for (let count = 1 + worker.below(20); count; count -= 1) {
    pipe.set(worker.key("s"), worker.text()).get(worker.key("s")).incr(worker.key("n"));
  }
  pipe.lpush(worker.key("s"), "wrong");
  await worker.call("pipeline", pipe.exec());
  // Without waiting in between.
  const key = worker.key("n");
  await worker.call("at once", Promise.all([worker.a.incr(key), worker.a.get(key), worker.a.incr(key)]));
}

async function script(worker) {
  await worker.call("script", worker.a.add(worker.key("q"), worker.text()));
  await worker.call("eval", worker.a.eval("return {1, 'two', {3}}", 0));
  await worker.call("missing", worker.a.evalsha("f".repeat(40), 0));
  await worker.call("trim", worker.a.ltrim(worker.key("q"), 0, 3));
}

async function publishing(worker) {
  const { a, s } = worker;
  const channel = `${worker.name}:ch`;
  await worker.call("subscribe", s.subscribe(channel));
  await worker.call("psubscribe", s.psubscribe(`${channel}*`));
  for (let count = 1 + worker.below(4); count; count -= 1) {
    const once = (event) => new Promise((resolve) => s.once(event, (...all) => resolve(all)));
    const heard = [once("message"), once("pmessage")];
    await worker.call("publish", a.publish(channel, worker.text()));
    await worker.call("message", Promise.all(heard));
  }
  await worker.call("unsubscribe", s.unsubscribe(channel));
  await worker.call("punsubscribe", s.punsubscribe(`${channel}*`));
}

async function stream(worker) {
  const { a, q } = worker;
  const key = `${worker.name}:x`;
  await worker.call("del", a.del(key));
  await worker.call("group", a.xgroup("CREATE", key, "g", "0", "MKSTREAM"));
  for (let number = 1, most = 1 + worker.below(3); number <= most; number += 1) {
    await worker.call("xadd", a.xadd(key, `${number}-1`, "f", worker.text()));
  }
  await worker.call("xread", a.xread("COUNT", 2, "STREAMS", key, "0"));
  await worker.call("xreadgroup", a.xreadgroup("GROUP", "g", "me", "COUNT", 1, "STREAMS", key, ">"));
  const waiting = worker.call("blocked", q.xread("BLOCK", 20000, "STREAMS", key, "5-0"));
  await worker.call("late", a.xadd(key, "9-1", "f", "late"));
  await waiting;
  await worker.call("xack", a.xack(key, "g", "1-1"));
  await worker.call("xrange", a.xrange(key, "-", "+"));
}

run(version, [strings, structures, pipeline, script, publishing, stream], connect, leave);
