// Writes again and again for three seconds, or until it works after an error. Takes ports.
// Says what the last write gave, and whether any failed.
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";

const { createClient } = createRequire(process.cwd() + "/")("redis");
const client = createClient({ socket: { host: "127.0.0.1", port: Number(process.argv[2]) } });
client.on("error", () => {});
await client.connect();
let last, failed = false;
for (const end = Date.now() + 3000; Date.now() < end && !(failed && last === "OK"); await sleep(20)) {
  last = await client.set("k", "v").catch((error) => error.message.split(" ")[0]);
  failed ||= last !== "OK";
}
console.log(JSON.stringify({ last, failed }));
process.exit();
