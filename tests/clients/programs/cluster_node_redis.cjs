// A cluster client that writes each key and reads it again, as cluster.py does.
const { createCluster } = require("module").createRequire(process.cwd() + "/")("redis");

const [port, count, , step] = process.argv.slice(2).map(Number);
const client = createCluster({ rootNodes: [{ url: `redis://127.0.0.1:${port}` }] });
client.on("error", () => {});
const wrong = [];
let failed = 0;

const insist = async (call) => {
  for (;;) {
    try {
      return await call();
    } catch {
      failed += 1;
    }
  }
};

const look = async (number) => {
  const value = await insist(() => client.get(`key:${number}`));
  if (value !== `value ${number}`) wrong.push([number, value]);
};

(async () => {
  await client.connect();
  for (let number = 0; number < count; number += 1) {
    await insist(() => client.set(`key:${number}`, `value ${number}`));
    await look(number);
    await look(Math.floor(number / 2));
    if (number % step === 0) console.log("at", number);
  }
  console.log("all");
  for (let number = 0; number < count; number += 1) await look(number);
  client.destroy();
  console.log(JSON.stringify({ keys: count, wrong, failed }));
})();
