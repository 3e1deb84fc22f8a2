// Stores one message and counts once; says what each call gave. Takes ports.
import { createRequire } from "node:module";

const { createClient } = createRequire(process.cwd() + "/")("redis");
const client = createClient({ socket: { host: "127.0.0.1", port: Number(process.argv[2]) } });
client.on("error", () => {});
await client.connect();
const pushed = await client.rPush("l", "m1").catch(() => "rejected");
const counted = await client.incr("n").catch(() => "rejected");
console.log(JSON.stringify({ pushed, counted }));
process.exit();
