// Reads a key; says its text. Takes ports.
import { createRequire } from "node:module";

const { createClient } = createRequire(process.cwd() + "/")("redis");
const client = createClient({ socket: { host: "127.0.0.1", port: Number(process.argv[2]) } });
await client.connect();
console.log(JSON.stringify(await client.get("k")));
process.exit();
