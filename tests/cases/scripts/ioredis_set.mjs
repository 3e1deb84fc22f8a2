// Writes again and again for three seconds, or until it works after an error. Takes ports, and how: default or reconnect.
// Says what the last write gave, and whether any failed.
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";

const { Redis } = createRequire(process.cwd() + "/")("ioredis");
const reconnectOnError = (error) => error.message.startsWith("READONLY");
const client = new Redis(Number(process.argv[2]), process.argv[4] === "reconnect" ? { reconnectOnError } : {});
client.on("error", () => {});
let last, failed = false;
for (const end = Date.now() + 3000; Date.now() < end && !(failed && last === "OK"); await sleep(20)) {
  last = await client.set("k", "v").catch((error) => error.message.split(" ")[0]);
  failed ||= last !== "OK";
}
console.log(JSON.stringify({ last, failed }));
process.exit();
