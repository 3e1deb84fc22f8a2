// Adds one to a number that it watches, and that somebody else has set meanwhile. Takes ports.
// Says what EXEC gave, and what the number is then.
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";

const Redis = createRequire(process.cwd() + "/")("ioredis");
const [port, direct] = process.argv.slice(2).map(Number);
const redis = new Redis({ port });
redis.on("error", () => {});
const world = new Redis({ port: direct });
await world.set("n", 1);
await redis.watch("n");
const seen = Number(await redis.get("n"));
await world.set("n", 10);
await sleep(500);
let said;
try {
  said = await redis.multi().set("n", seen + 1).exec();
} catch (error) {
  said = error.name;
}
console.log(JSON.stringify({ said, n: Number(await world.get("n")) }));
process.exit();
