// Adds one to a number that it watches, and that somebody else has set meanwhile. Takes ports.
// Says what EXEC gave, and what the number is then.
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";

const { createClient } = createRequire(process.cwd() + "/")("redis");
const [port, direct] = process.argv.slice(2).map(Number);
const redis = createClient({ socket: { port } });
redis.on("error", () => {});
const world = createClient({ socket: { port: direct } });
await Promise.all([redis.connect(), world.connect()]);
await world.set("n", "1");
await redis.watch("n");
const seen = Number(await redis.get("n"));
await world.set("n", "10");
await sleep(500);
let said;
try {
  said = await redis.multi().set("n", String(seen + 1)).exec();
} catch (error) {
  said = error.constructor.name;
}
console.log(JSON.stringify({ said, n: Number(await world.get("n")) }));
process.exit();
