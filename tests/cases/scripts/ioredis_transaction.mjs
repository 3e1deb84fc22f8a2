// Pushes three messages in one transaction, then asks for something else. Takes ports. Says how the two ended.
import { createRequire } from "node:module";

const { Redis } = createRequire(process.cwd() + "/")("ioredis");
const client = new Redis(Number(process.argv[2]));
const transaction = client.multi();
for (const text of ["one", "two", "three"]) transaction.rpush("l", text);
const ended = await transaction.exec().catch((error) => error.message.split(" ")[0]);
console.log(JSON.stringify([ended, await client.ping()]));
process.exit();
