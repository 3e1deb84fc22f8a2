// Pushes three messages in one transaction, then asks for something else. Takes ports. Says how the two ended.
import { createRequire } from "node:module";

const { createClient } = createRequire(process.cwd() + "/")("redis");
const client = createClient({ socket: { host: "127.0.0.1", port: Number(process.argv[2]) } });
client.on("error", () => {});
await client.connect();
const transaction = client.multi();
for (const text of ["one", "two", "three"]) transaction.rPush("l", text);
const ended = await transaction.exec().catch((error) => error.message.split(" ")[0]);
console.log(JSON.stringify([ended, await client.ping()]));
process.exit();
