// Stores one message and counts once; says what each call gave. Takes ports.
import { createRequire } from "node:module";

const { Redis } = createRequire(process.cwd() + "/")("ioredis");
const client = new Redis(Number(process.argv[2]));
client.on("error", () => {});
const pushed = await client.rpush("l", "m1").catch(() => "rejected");
const counted = await client.incr("n").catch(() => "rejected");
console.log(JSON.stringify({ pushed, counted }));
client.disconnect();
