// ioredis by way of a Sentinel: writes until it is told to end, and says what it was answered.
// Arguments: the Sentinel's port, the service's name. A line on stdin: end. Last line of output: the result, in JSON.
const Redis = require("module").createRequire(process.cwd() + "/")("ioredis");

const [port, name] = process.argv.slice(2);
const options = (role) => ({
  sentinels: [{ host: "127.0.0.1", port: Number(port) }],
  name,
  role,
  sentinelRetryStrategy: () => 50,
  retryStrategy: () => 50,
  maxRetriesPerRequest: null,
  failoverDetector: true,
  reconnectOnError: (error) => (error.message.startsWith("READONLY") ? 2 : false),
});

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function main() {
  const primary = new Redis(options("master"));
  const replica = new Redis(options("slave"));
  const ports = new Set();
  for (const each of [primary, replica]) {
    each.on("error", () => {});
    each.on("connect", () => ports.add(each.stream.remotePort));
  }
  let ended = false;
  let acknowledged = 0;
  let failed = 0;
  process.stdin.once("data", () => { ended = true; });
  while (!ended) {
    try {
      await primary.set("ioredis", acknowledged);
      acknowledged += 1;
    } catch (error) {
      failed += 1;
    }
    if (acknowledged === 1) console.log("writing");
    await pause(20);
  }
  await primary.set("ioredis", "last");
  let seen = null;
  for (let turn = 0; turn < 400 && seen !== "last"; turn += 1) {
    seen = await replica.get("ioredis").catch(() => null);
    await pause(25);
  }
  console.log(JSON.stringify({ acknowledged, failed, seen, ports: [...ports] }));
  primary.disconnect();
  replica.disconnect();
  process.stdin.destroy();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
