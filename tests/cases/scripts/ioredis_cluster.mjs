// Transactions of one slot, then a command, and a transaction once more, in a cluster. Takes ports.
// Says what came of each.
import { createRequire } from "node:module";

const { Cluster } = createRequire(process.cwd() + "/")("ioredis");
const [port] = process.argv.slice(2).map(Number);
const cluster = new Cluster([{ host: "127.0.0.1", port }]);
cluster.on("error", () => {});
const said = [];
async function counted() {
  try {
    said.push((await cluster.multi().incr("n").exec()).map(([error, count]) => error ?? count));
  } catch (error) {
    said.push(error.message.split(" ")[0]);
  }
}
for (let i = 0; i < 3; i++) await counted();
await cluster.get("n");
await counted();
console.log(JSON.stringify(said));
process.exit();
