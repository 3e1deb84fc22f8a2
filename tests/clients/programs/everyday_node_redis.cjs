// An everyday conversation with npm redis's defaults: takes a port, prints what it got, as JSON.
const load = require("module").createRequire(process.cwd() + "/");
const { createClient } = load("redis");
const { version } = load("redis/package.json");

async function main() {
  const url = `redis://127.0.0.1:${process.argv[2]}`;
  const client = await createClient({ url }).connect();
  const got = { ping: await client.ping() };
  await client.set("greeting", "héllo 🎉");
  got.get = await client.get("greeting");
  got.missing = await client.get("missing");
  got.push = await client.rPush("list", ["a", "b", "c"]);
  got.range = await client.lRange("list", 0, -1);
  await client.hSet("hash", { f: "1", g: "2" });
  got.hash = await client.hGetAll("hash");
  got.pipeline = await Promise.all([client.incr("n"), client.incr("n"), client.get("n")]);
  got.transaction = await client.multi().incr("n").rPush("list", "d").lLen("list").exec();
  got.script = await client.eval("return {KEYS[1], ARGV[1]}", { keys: ["k"], arguments: ["v"] });
  got.error = await client.incr("greeting").catch((error) => error.message);
  const subscriber = await client.duplicate().connect();
  let heard;
  const message = new Promise((resolve) => (heard = resolve));
  await subscriber.subscribe("channel", (text, channel) => heard([channel, text]));
  await client.publish("channel", "hello");
  got.message = await message;
  const blocked = await client.duplicate().connect();
  const job = blocked.blPop("queue", 30);
  setTimeout(() => client.rPush("queue", "job"), 50);
  got.blocking = await job;
  got["timed out"] = await blocked.blPop("queue", 0.05);
  for (const each of [client, subscriber, blocked]) await each.close();
  console.log(JSON.stringify({ version, everyday: got }));
}

main();
