// All that npm redis can be asked to do: see wide.cjs.
const { all, main, settle, until } = require("./wide.cjs");
const load = require("module").createRequire(process.cwd() + "/");
const { BasicClientSideCache, RESP_TYPES, createClient, createCluster, createSentinel, defineScript } = load("redis");
const { version } = load("redis/package.json");

const host = "127.0.0.1";
const both = defineScript({
  SCRIPT: `return '${process.pid}' and {KEYS[1], ARGV[1]}`,
  NUMBER_OF_KEYS: 1,
  parseCommand: (parser, key, word) => { parser.pushKey(key); parser.push(word); },
  transformReply: (reply) => reply,
});
const keyOf = (words) => words.slice(1).find((word) => word.startsWith("{"));

function connect({ kind, port, protocol }, more = {}) {
  const options = { RESP: protocol, unstableResp3: true, scripts: { both }, ...more };
  if (kind === "cluster") return createCluster({ rootNodes: [{ url: `redis://${host}:${port}` }], ...options });
  if (kind === "sentinel") return createSentinel({ name: process.argv[5], sentinelRootNodes: [{ host, port }], masterPoolSize: 2, ...options });
  return createClient({ url: `redis://${host}:${port}`, ...options });
}

async function open(place, more) {
  const whole = connect(place, more);
  whole.on("error", () => {});
  await whole.connect();
  // By way of a Sentinel what belongs together needs a connection that is lent.
  const client = place.kind === "sentinel" ? await whole.acquire() : whole;
  const routing = (words) => ({ alone: [], cluster: [keyOf(words), false], sentinel: [false] })[place.kind];
  const words = (words) => client.sendCommand(...routing(words), words);
  const queue = (of) => of.reduce((multi, words) => multi.addCommand(...routing(words), words), client.multi());
  return {
    client, whole, words,
    everywhere: async (words) => (place.kind === "cluster" ? (await Promise.all(client.masters.map(async (node) => (await client.nodeClient(node)).sendCommand(words)))).join() : client.sendCommand(...routing(words), words)),
    pipeline: (of) => queue(of).execAsPipeline(),
    transaction: (of) => queue(of).exec(),
    watch: (...keys) => (place.kind === "cluster" ? words(["WATCH", ...keys]) : client.watch(keys)),
    subscribe: (names, heard) => whole.subscribe(names, heard),
    psubscribe: (names, heard) => whole.pSubscribe(names, heard),
    ssubscribe: whole.sSubscribe && ((names, heard) => whole.sSubscribe(names, heard)),
    unsubscribe: (names) => whole.unsubscribe(names),
    close: async () => {
      if (place.kind === "sentinel") await client.release();
      await whole.destroy();
    },
  };
}

const typed = {
  async shapes(open) {
    const { whole: client, close } = await open();
    const bytes = client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });
    const got = await all([
      client.hSet("{t}h", { a: "1", b: "two" }), client.hSet("{t}h", new Map([["c", "3"]])), client.hGetAll("{t}h"),
      client.withTypeMapping({ [RESP_TYPES.MAP]: Map }).hGetAll("{t}h"), bytes.hGetAll("{t}h"), client.mSet({ "{t}a": "1", "{t}b": "2" }),
      client.mGet(["{t}a", "{t}b", "{t}c"]), client.set("{t}bin", Buffer.from([0, 255, 13, 10, 200])), bytes.get("{t}bin"),
      client.zAdd("{t}z", [{ score: 1, value: "a" }, { score: Infinity, value: "b" }]), client.zRangeWithScores("{t}z", 0, -1), client.zScore("{t}z", "b"),
      client.zPopMax("{t}z"), client.xAdd("{t}x", "1-1", { f: "v" }), client.xRead({ key: "{t}x", id: "0" }, { COUNT: 5 }), client.xRange("{t}x", "-", "+"),
      client.xGroupCreate("{t}x", "g", "0"), client.xReadGroup("g", "c", { key: "{t}x", id: ">" }), client.xPending("{t}x", "g"),
      client.set("{t}e", "v", { expiration: { type: "PXAT", value: 4102444800000 }, GET: true }), client.pExpireTime("{t}e"),
      client.sAdd("{t}s", ["1", "2", "3"]), client.sMembers("{t}s"), client.withTypeMapping({ [RESP_TYPES.SET]: Set }).sMembers("{t}s"),
      client.objectEncoding("{t}s"), client.hRandFieldCountWithValues("{t}none", 2), client.lmPop("{t}none", "LEFT"), client.incr("{t}h"),
      client.geoAdd("{t}g", { longitude: 13.361389, latitude: 38.115556, member: "Palermo" }), client.geoPos("{t}g", ["Palermo", "none"]),
      client.eval("return {KEYS[1], ARGV[1]}", { keys: ["{t}k"], arguments: ["v"] }),
    ]);
    got.push(await client.del(["{t}h", "{t}a", "{t}b", "{t}bin", "{t}z", "{t}x", "{t}e", "{t}s", "{t}g"]));
    await close();
    return got;
  },

  async commands(open) {
    const { whole: client, close } = await open();
    // The first is not known to the server yet and is sent whole; a transaction has it refused or not, as the server knows it.
    const got = [await client.both("{t}k", "v"), await client.both("{t}k", "w")];
    got.push(await settle(client.multi().both("{t}k", "1").set("{t}k", "2").both("{t}k", "3").exec()), await client.del("{t}k"));
    await close();
    return got;
  },

  async scanning(open, { kind }) {
    const { whole: client, words, close } = await open();
    for (let turn = 0; turn < 300; turn += 1) await words(["SADD", "{t}set", `member ${turn}`]);
    const [found, keys] = [[], []];
    let cursor = "0";
    do {
      const some = await client.sScan("{t}set", cursor, { COUNT: 20 });
      found.push(...some.members);
      cursor = some.cursor;
    } while (cursor !== "0");
    if (kind === "alone") for await (const some of client.scanIterator({ MATCH: "{t}*", COUNT: 7 })) keys.push(...some);
    await words(["DEL", "{t}set"]);
    await close();
    return [new Set(found).size, keys];
  },

  async alone(_, place) {
    if (place.kind !== "alone") return null;
    const mine = await open(place, { database: 3, name: "mine" });
    const other = await open(place);
    const got = [await mine.client.set("k", "v"), await mine.client.clientGetName(), await mine.client.dbSize(), await other.client.dbSize()];
    got.push(await mine.client.select(4), await mine.client.dbSize(), await mine.client.select(3), await mine.client.flushDb());
    const told = [];
    const monitor = await open(place);
    await monitor.client.monitor((line) => /"set"/i.test(line) && told.push(line.replace(/^[^"]*/, "")));
    await mine.client.set("seen", "v");
    await until(() => told.length, "MONITOR");
    got.push(told, await mine.client.reset(), await mine.client.get("seen"));
    await Promise.all([mine.close(), monitor.close()]);
    if (place.protocol === 3) {
      // What was read is remembered until somebody else writes it.
      const cache = new BasicClientSideCache({ ttl: 0, maxEntries: 0 });
      const reader = await open(place, { clientSideCache: cache });
      got.push(await other.client.set("tracked", "1"), await reader.client.get("tracked"), await reader.client.get("tracked"), cache.stats().hitCount);
      await other.client.set("tracked", "2");
      await until(async () => (await reader.client.get("tracked")) === "2", "an invalidation");
      await until(() => cache.stats().missCount >= 2, "a second miss");
      await reader.close();
    }
    await other.client.flushAll();
    await other.close();
    return got;
  },
};

main({ version, open, typed }).catch((error) => {
  console.error(error);
  process.exit(1);
});
