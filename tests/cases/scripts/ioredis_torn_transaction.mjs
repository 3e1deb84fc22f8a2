// A transaction, and what others ask on the same connection, then and a second later; READONLY makes it connect anew.
// Takes ports. Says what became of each within three seconds.
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";

const Redis = createRequire(process.cwd() + "/")("ioredis");
const [port, direct] = process.argv.slice(2).map(Number);
await new Redis({ port: direct }).mset("mine", "mine", "later", "later", "last", "last");
const reconnectOnError = (error) => (error.message.startsWith("READONLY") ? 2 : false);
const redis = new Redis({ port, reconnectOnError });
redis.on("error", () => {});
const said = { transaction: "not settled", mine: "not settled", later: "not settled", last: "not settled" };

async function note(name, promise) {
  try {
    said[name] = await promise;
  } catch (error) {
    said[name] = error.message;
  }
}

const asked = [
  note("transaction", redis.multi().del("k").hset("k", "f", "v").expire("k", 60).exec()),
  note("mine", redis.get("mine")),
  sleep(1000).then(() => note("later", redis.get("later"))),
  sleep(1000).then(() => note("last", redis.get("last"))),
];
await Promise.race([Promise.all(asked), sleep(3000)]);
console.log(JSON.stringify(said));
process.exit();
