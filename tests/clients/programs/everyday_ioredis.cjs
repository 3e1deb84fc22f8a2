// An everyday conversation with ioredis's defaults: takes a port, prints what it got, as JSON.
const load = require("module").createRequire(process.cwd() + "/");
const Redis = load("ioredis");
const { version } = load("ioredis/package.json");

async function main() {
  const port = Number(process.argv[2]);
  const client = new Redis(port, "127.0.0.1");
  const got = { ping: await client.ping() };
  await client.set("greeting", "héllo 🎉");
  got.get = await client.get("greeting");
  got.missing = await client.get("missing");
  got.push = await client.rpush("list", "a", "b", "c");
  got.range = await client.lrange("list", 0, -1);
  await client.hset("hash", { f: "1", g: "2" });
  got.hash = await client.hgetall("hash");
  got.pipeline = await client.pipeline().incr("n").incr("n").get("n").exec();
  got.transaction = await client.multi().incr("n").rpush("list", "d").llen("list").exec();
  client.defineCommand("both", { numberOfKeys: 1, lua: "return {KEYS[1], ARGV[1]}" });
  got.script = await client.both("k", "v");
  got.error = await client.incr("greeting").catch((error) => error.message);
  const subscriber = new Redis(port, "127.0.0.1");
  await subscriber.subscribe("channel");
  const message = new Promise((resolve) => subscriber.on("message", (...all) => resolve(all)));
  await client.publish("channel", "hello");
  got.message = await message;
  const blocked = new Redis(port, "127.0.0.1");
  const job = blocked.blpop("queue", 30);
  setTimeout(() => client.rpush("queue", "job"), 50);
  got.blocking = await job;
  got["timed out"] = await blocked.blpop("queue", 0.05);
  for (const each of [client, subscriber, blocked]) await each.quit();
  console.log(JSON.stringify({ version, everyday: got }));
}

main();
