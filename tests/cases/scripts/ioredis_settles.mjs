// Stores one message and waits two seconds for the outcome; says it. Takes ports, and a limit for a command in ms, or 0.
import { createRequire } from "node:module";

const { Redis } = createRequire(process.cwd() + "/")("ioredis");
const limit = Number(process.argv[4]);
const client = new Redis(Number(process.argv[2]), {
  autoResendUnfulfilledCommands: false,
  ...(limit && { commandTimeout: limit }),
});
client.on("error", () => {});
const never = new Promise((resolve) => setTimeout(resolve, 2000, "not settled"));
const pushed = client.rpush("l", "m1").catch(() => "rejected");
const outcome = await Promise.race([pushed, never]);
// The client itself is well: it has connected again.
console.log(JSON.stringify({ outcome, next: await client.ping() }));
process.exit();
