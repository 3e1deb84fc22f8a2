// What the wide programs share: everything that a client can be asked to do, whichever client it is.
// `main` takes what is particular to a client, as an object of functions; the program's arguments are the kind of place
// (alone, cluster, sentinel), a port and the protocol. Prints all that came back, as JSON: a second run elsewhere gives the same.
const families = require("./families.cjs");

// Anything a client gives, as JSON that tells apart what JSON does not.
function plain(value) {
  if (value === undefined) return "(undefined)";
  if (value === null || typeof value === "boolean" || typeof value === "string") return value;
  if (typeof value === "number") return Number.isFinite(value) ? value : `(${value})`;
  if (typeof value === "bigint") return `(bigint ${value})`;
  if (Buffer.isBuffer(value)) return `(buffer ${value.toString("base64")})`;
  if (value instanceof Error) return `(${value.constructor.name}: ${value.message}${value.replies ? ` ${JSON.stringify(plain(value.replies))}` : ""})`;
  if (value instanceof Map) return { "(map)": [...value].map(plain) };
  if (value instanceof Set) return { "(set)": [...value].map(plain) };
  if (Array.isArray(value)) return value.map(plain);
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, plain(each)]));
}

const settle = (promise) => Promise.resolve(promise).catch((error) => error);

// Several promises at once, as what they came to.
const all = (promises) => Promise.all(promises.map(settle));

async function until(done, what) {
  const begun = Date.now();
  while (!(await done())) {
    if (Date.now() - begun > 20000) throw new Error(`waited 20 s for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

// A family one command after the other, without waiting, as a pipeline and as transactions.
async function family(client, of, kind) {
  const fresh = async (replies) => {
    await client.words(["DEL", ...new Set(of.flat().filter((word) => word.startsWith("{f}")).concat("{f}"))]);
    return replies;
  };
  await fresh();
  const got = {};
  got.each = [];
  for (const words of of) got.each.push(await settle(client.words(words)));
  await fresh();
  // A cluster's client may send one of them again, behind others.
  if (kind !== "cluster") got.together = await fresh(await all(of.map((words) => client.words(words))));
  got.pipeline = await fresh(await settle(client.pipeline(of)));
  got.refused = await fresh(await settle(client.transaction(of)));
  const queued = of.filter((_, at) => !/unknown (sub)?command|wrong number/.test(got.each[at]?.message));
  got.transaction = await fresh(await settle(client.transaction(queued)));
  return got;
}

// What is heard of channels, patterns and shards, in order.
async function channels(open, { kind }) {
  const heard = [];
  const note = (kind) => (...words) => heard.push([kind, ...words]);
  const [subscriber, publisher] = [await open(), await open()];
  await subscriber.subscribe(["{f}one", "{f}two"], note("message"));
  await subscriber.psubscribe(["{f}t*"], note("pattern"));
  const shards = subscriber.ssubscribe !== undefined;
  if (shards) await subscriber.ssubscribe(["{f}shard"], note("shard"));
  const got = { numsub: await publisher.words(["PUBSUB", "NUMSUB", "{f}one", "{f}three"]), receivers: [] };
  for (const [command, name] of [["PUBLISH", "{f}one"], ["PUBLISH", "{f}two"], ["PUBLISH", "{f}three"], ["SPUBLISH", "{f}shard"]]) {
    for (const text of ["hello", "", "héllo 🎉", "x".repeat(50000)]) {
      got.receivers.push(await publisher.words([command, name, text]));
    }
  }
  const count = shards ? 20 : 16;
  await until(() => heard.length === count, `${count} messages`);
  await subscriber.unsubscribe(["{f}one"]);
  await publisher.words(["PUBLISH", "{f}one", "nobody"]);
  await publisher.words(["PUBLISH", "{f}two", "somebody"]);
  await until(() => heard.length === count + 2, "a message and a pattern's");
  got.heard = heard.map(([kind, ...words]) => [kind, ...words.map((word) => (word?.length > 99 ? word.length : word))]);
  got.heard.sort((one, other) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1));
  await Promise.all([subscriber.close(), publisher.close()]);
  // A node of a cluster counts its own subscribers, and which one has them is chance.
  return kind === "cluster" ? { heard: got.heard } : got;
}

// Commands that wait: each finds what is pushed once it is known to wait, and each that nothing comes for ends.
async function waiting(open) {
  const [blocked, other] = [await open(), await open()];
  await other.words(["DEL", "{f}l", "{f}z", "{f}x", "{f}m"]);
  await other.words(["XGROUP", "CREATE", "{f}x", "g", "$", "MKSTREAM"]);
  const got = [];
  const push = ["RPUSH", "{f}l", "job"], score = ["ZADD", "{f}z", "1", "job"];
  for (const [words, with_] of [
    [["BLPOP", "{f}l", "20"], push], [["BRPOP", "{f}none", "{f}l", "20"], push], [["BLMOVE", "{f}l", "{f}m", "LEFT", "RIGHT", "20"], push],
    [["BRPOPLPUSH", "{f}l", "{f}m", "20"], push], [["BLMPOP", "20", "1", "{f}l", "LEFT"], push], [["BZPOPMIN", "{f}z", "20"], score],
    [["BZPOPMAX", "{f}z", "20"], score], [["BZMPOP", "20", "1", "{f}z", "MIN"], score],
    [["XREAD", "BLOCK", "20000", "STREAMS", "{f}x", "$"], ["XADD", "{f}x", "1-1", "f", "v"]],
    [["XREADGROUP", "GROUP", "g", "c", "BLOCK", "20000", "STREAMS", "{f}x", ">"], ["XADD", "{f}x", "1-2", "f", "v"]],
  ]) {
    if (words[0] === "XREADGROUP") await other.words(["XGROUP", "SETID", "{f}x", "g", "$"]);
    const reply = settle(blocked.words(words));
    await until(async () => /blocked_clients:[1-9]/.test(await other.everywhere(["INFO", "clients"])), `${words[0]} to wait`);
    await other.words(with_);
    got.push([words[0], await reply]);
    const ended = words.map((word) => (word === "20" ? "0.02" : word === "20000" ? "20" : word));
    got.push([words[0], await settle(blocked.words(ended))]);
  }
  await Promise.all([blocked.close(), other.close()]);
  return got;
}

// A transaction that somebody else's write undoes, one that nobody does, and one that is given up.
async function watched(open) {
  const [client, other] = [await open(), await open()];
  const got = [await client.words(["DEL", "{f}w"])];
  for (const meddling of [[["SET", "{f}w", "other"]], [["GET", "{f}w"]], []]) {
    got.push(await client.watch("{f}w"));
    for (const words of meddling) got.push(await other.words(words));
    if (meddling.length) got.push(await settle(client.transaction([["INCR", "{f}i"], ["SET", "{f}w", "mine"], ["LPUSH", "{f}w", "x"]])));
    else got.push(await client.words(["UNWATCH"]));
  }
  got.push(await client.words(["MGET", "{f}w", "{f}i"]));
  await Promise.all([client.close(), other.close()]);
  return got;
}

// Two hundred commands under way on each of eight connections, with values that carry their keys, small and large.
async function crowd(open) {
  const clients = await Promise.all(Array.from({ length: 8 }, () => open()));
  const wrong = [];
  await Promise.all(clients.map((client, who) => Promise.all(Array.from({ length: 200 }, async (_, turn) => {
    const key = `{crowd:${who}:${turn}}`;
    const value = `${key} ${"v".repeat(turn % 20 ? turn : 100000)}`;
    const [set, read, pushed] = await Promise.all([client.words(["SET", key, value]), client.words(["GET", key]), client.words(["RPUSH", `${key}:l`, value])]);
    if (set !== "OK" || read !== value || Number(pushed) !== 1) wrong.push([key, set, String(read).slice(0, 40), pushed]);
    await client.words(["DEL", key, `${key}:l`]);
  }))));
  await Promise.all(clients.map((client) => client.close()));
  return wrong;
}

// Its connection is cut by the server: what is asked next is answered on a new one, a subscription goes on.
async function reconnecting(open) {
  const [client, subscriber, other] = [await open(), await open(), await open()];
  const heard = [];
  await subscriber.subscribe(["{f}again"], (...words) => heard.push(words));
  const got = [await client.words(["SET", "{f}r", "before"])];
  const id = await client.words(["CLIENT", "ID"]);
  got.push(await other.words(["CLIENT", "KILL", "ID", String(id)]));
  // What was sent into the end of a connection fails in one client and is sent again by another; here it is the next that counts.
  await until(async () => (await settle(client.words(["GET", "{f}r"]))) === "before", "the value");
  got.push((await client.words(["CLIENT", "ID"])) !== id, await client.words(["WAIT", "0", "10"]));
  await other.words(["CLIENT", "KILL", "TYPE", "pubsub"]);
  await until(async () => (await other.words(["PUBSUB", "NUMSUB", "{f}again"]))[1] == 1, "the subscription");
  await other.words(["PUBLISH", "{f}again", "hello"]);
  await until(() => heard.length, "a message");
  got.push(heard);
  await Promise.all([client.close(), subscriber.close(), other.close()]);
  return got;
}

module.exports = { all, until, settle };
module.exports.main = async ({ version, open, typed }) => {
  const [kind, port, protocol] = process.argv.slice(2);
  const place = { kind, port: Number(port), protocol: Number(protocol) };
  const opens = () => open(place);
  const got = {};
  const client = await opens();
  for (const [name, of] of Object.entries(families)) {
    // What is asked of a server, not of a key, is asked of any node of a cluster, and not always of the same.
    const keyed = of.filter((words) => kind !== "cluster" || words.some((word) => word.startsWith("{f}")));
    if (keyed.length) got[name] = await family(client, keyed, kind);
  }
  await client.close();
  for (const [name, part] of Object.entries({ channels, waiting, watched, crowd, ...typed })) got[name] = await part(opens, place);
  if (kind === "alone") got.reconnecting = await reconnecting(opens);
  console.log(JSON.stringify({ version, got: plain(got) }));
};
