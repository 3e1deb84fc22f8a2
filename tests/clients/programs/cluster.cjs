// What the cluster programs share: each key is written and read again, as in cluster.py, with any cluster client that has `get` and `set`.
// Takes a function that gives a connected client for a port, and one that ends it; the arguments and the result are cluster.py's.
module.exports = async (connect, end) => {
  const [port, count, , step] = process.argv.slice(2).map(Number);
  const client = await connect(port);
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

  for (let number = 0; number < count; number += 1) {
    await insist(() => client.set(`key:${number}`, `value ${number}`));
    await look(number);
    await look(Math.floor(number / 2));
    if (number % step === 0) console.log("at", number);
  }
  console.log("all");
  for (let number = 0; number < count; number += 1) await look(number);
  end(client);
  console.log(JSON.stringify({ keys: count, wrong, failed }));
};
