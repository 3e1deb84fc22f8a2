// Connects with the defaults and waits three seconds for an answer; says it, or the error. Takes ports.
import { createRequire } from "node:module";

const { createClient } = createRequire(process.cwd() + "/")("redis");
const client = createClient({ socket: { host: "127.0.0.1", port: Number(process.argv[2]) } });
client.on("error", () => {});
const answer = client.connect().then(() => client.ping(), (error) => error.name);
const none = new Promise((resolve) => setTimeout(resolve, 3000, "no answer"));
console.log(JSON.stringify(await Promise.race([answer, none])));
process.exit();
