// All that ioredis can be asked to do: see wide.cjs.
const { all, main, settle, until } = require("./wide.cjs");
const load = require("module").createRequire(process.cwd() + "/");
const Redis = load("ioredis");
const { version } = load("ioredis/package.json");

const host = "127.0.0.1";

function connect({ kind, port, protocol }, more = {}) {
  const options = { protocol, ...more };
  if (kind === "cluster") return new Redis.Cluster([{ host, port }], { redisOptions: options, shardedSubscribers: true, ...more });
  if (kind === "sentinel") return new Redis({ sentinels: [{ host, port }], name: process.argv[5], ...options });
  return new Redis({ host, port, ...options });
}

async function open(place, more) {
  const client = connect(place, more);
  client.on("error", () => {});
  const pipe = (pipeline, of) => of.reduce((pipeline, words) => pipeline.call(...words), pipeline).exec();
  await client.ping();
  return {
    client,
    words: (words) => client.call(...words),
    everywhere: async (words) => (place.kind === "cluster" ? (await Promise.all(client.nodes("master").map((node) => node.call(...words)))).join() : client.call(...words)),
    pipeline: (of) => pipe(client.pipeline(), of),
    transaction: (of) => pipe(client.multi(), of),
    watch: (...keys) => client.watch(...keys),
    subscribe: (names, heard) => { client.on("message", heard); return client.subscribe(...names); },
    psubscribe: (names, heard) => { client.on("pmessage", heard); return client.psubscribe(...names); },
    ssubscribe: (names, heard) => { client.on("smessage", heard); return client.ssubscribe(...names); },
    unsubscribe: (names) => client.unsubscribe(...names),
    close: async () => client.disconnect(),
  };
}

const typed = {
  async shapes(open) {
    const { client, close } = await open();
    const got = await all([
      client.hset("{t}h", { a: 1, b: "two" }), client.hset("{t}h", new Map([["c", 3]])), client.hgetall("{t}h"), client.hgetallBuffer("{t}h"),
      client.mset({ "{t}a": 1, "{t}b": 2 }), client.mget(["{t}a", "{t}b", "{t}c"]), client.setBuffer("{t}bin", Buffer.from([0, 255, 13, 10, 200])),
      client.getBuffer("{t}bin"), client.zadd("{t}z", 1, "a", 2.5, "b"), client.zrange("{t}z", 0, -1, "WITHSCORES"), client.zrangeBuffer("{t}z", 0, -1),
      client.xadd("{t}x", "1-1", "f", "v"), client.xread("COUNT", 5, "STREAMS", "{t}x", 0), client.xrange("{t}x", "-", "+"),
      client.set("{t}e", "v", "PXAT", 4102444800000, "GET"), client.pexpiretime("{t}e"), client.sadd("{t}s", [1, 2, 3]), client.smembers("{t}s"),
      client.object("ENCODING", "{t}s"), client.geosearch("{t}none", "FROMLONLAT", 1, 1, "BYRADIUS", 1, "km"), client.incr("{t}h"),
    ]);
    await client.del("{t}h", "{t}a", "{t}b", "{t}bin", "{t}z", "{t}x", "{t}e", "{t}s");
    await close();
    return got;
  },

  async commands(open) {
    const { client, close } = await open();
    client.defineCommand("both", { numberOfKeys: 1, lua: `return {KEYS[1], ARGV[1], '${process.pid}'} and {KEYS[1], ARGV[1]}` });
    // The first is not known to the server yet and is sent whole; in a pipeline the client makes sure beforehand.
    const got = [await client.both("{t}k", "v"), await client.both("{t}k", "w"), await client.bothBuffer("{t}k", "x")];
    got.push(await client.pipeline().both("{t}k", 1).set("{t}k", 2).both("{t}k", 3).exec(), await client.multi().both("{t}k", 4).exec());
    got.push(await client.del("{t}k"));
    await close();
    return got;
  },

  async automatic(open, place) {
    const { client, close } = await open_(place, { enableAutoPipelining: true });
    const got = await all(Array.from({ length: 100 }, (_, turn) => [client.incr("{t}n"), client.get("{t}n"), client.lpush("{t}n", turn)]).flat());
    got.push(await client.del("{t}n"));
    await close();
    return got;
  },

  async scanning(open, { kind }) {
    const { client, words, close } = await open();
    for (let turn = 0; turn < 300; turn += 1) await words(["SADD", "{t}set", `member ${turn}`]);
    const found = [];
    for await (const some of client.sscanStream("{t}set", { count: 20 })) found.push(...some);
    const keys = [];
    if (kind !== "cluster") for await (const some of client.scanStream({ match: "{t}*", count: 7 })) keys.push(...some);
    await words(["DEL", "{t}set"]);
    await close();
    return [new Set(found).size, keys];
  },

  async alone(_, place) {
    if (place.kind !== "alone") return null;
    const { client, words, close } = await open_(place, { db: 3, keyPrefix: "pre:", connectionName: "mine", lazyConnect: true });
    const other = await open_(place);
    const got = [await client.set("k", "v"), await client.get("k"), await words(["CLIENT", "GETNAME"]), await client.dbsize(), await other.client.dbsize()];
    got.push(await client.multi({ pipeline: false }), await client.incr("n"), await client.get("k"), await client.exec());
    got.push(await client.multi({ pipeline: false }), await client.incr("n"), await client.discard(), await client.get("n"));
    got.push(await client.select(4), await client.dbsize(), await client.select(3), await client.flushdb());
    // What MONITOR tells of one command.
    const monitor = await other.client.monitor();
    const told = [];
    monitor.on("monitor", (_, args) => args[0].toUpperCase() === "SET" && told.push(args));
    await client.set("seen", "v");
    await until(() => told.length, "MONITOR");
    monitor.disconnect();
    got.push(told);
    // Invalidations by way of another connection.
    const reader = await open_(place);
    const listener = await open_(place);
    const invalid = [];
    await listener.subscribe(["__redis__:invalidate"], (...message) => invalid.push(message));
    if (place.protocol === 2) {
      got.push(await reader.words(["CLIENT", "TRACKING", "ON", "REDIRECT", String(await other.words(["CLIENT", "ID"])), "NOLOOP"]));
      got.push(await reader.words(["CLIENT", "TRACKING", "OFF"]));
      // The id of a connection that subscribes is known from the list only.
      const line = (await other.words(["CLIENT", "LIST", "TYPE", "pubsub"])).split("\n").find((each) => each.includes("sub=1"));
      got.push(await reader.words(["CLIENT", "TRACKING", "ON", "REDIRECT", /\bid=(\d+)/.exec(line)[1]]));
      await reader.words(["GET", "tracked"]);
      await other.words(["SET", "tracked", "v"]);
      await until(() => invalid.length, "an invalidation");
      got.push(invalid);
    }
    await other.words(["DEL", "tracked", "pre:seen"]);
    await Promise.all([client, other.client, reader.client, listener.client].map((each) => settle(each.quit())));
    return got;
  },
};

const open_ = open;
main({ version, open, typed }).catch((error) => {
  console.error(error);
  process.exit(1);
});
