// Connects with the defaults and waits three seconds for an answer; says it, or the error. Takes ports.
import { createRequire } from "node:module";

const { Redis } = createRequire(process.cwd() + "/")("ioredis");
const client = new Redis(Number(process.argv[2]));
client.on("error", () => {});
const answer = client.ping().catch((error) => error.name);
const none = new Promise((resolve) => setTimeout(resolve, 3000, "no answer"));
console.log(JSON.stringify(await Promise.race([answer, none])));
process.exit();
