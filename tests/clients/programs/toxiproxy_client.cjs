// toxiproxy-node-client against a control API: what its README shows. Takes the API's URL and a Redis address; prints what it saw.
const net = require("node:net");
const { createRequire } = require("node:module");
const { Toxiproxy } = createRequire(process.cwd() + "/")("toxiproxy-node-client");

const [url, upstream] = process.argv.slice(2);

function ping(proxy) {
  const port = Number(proxy.listen.split(":").pop());
  return new Promise((resolve, reject) => {
    const began = process.hrtime.bigint();
    const link = net.connect(port, "127.0.0.1", () => link.write("PING\r\n"));
    link.on("error", reject);
    link.on("data", (data) => {
      link.destroy();
      resolve([data.toString(), Number(process.hrtime.bigint() - began) / 1e9]);
    });
  });
}

const failed = (promise) => promise.then(() => null, (error) => error.message ?? String(error));

(async () => {
  const server = new Toxiproxy(url);
  const proxy = await server.createProxy({ name: "redis", listen: "127.0.0.1:0", upstream });
  const seen = { version: await server.getVersion(), plain: (await ping(proxy))[0] };
  const toxic = await proxy.addToxic({
    name: "late", type: "latency", stream: "downstream", toxicity: 1, attributes: { latency: 300, jitter: 0 },
  });
  seen.late = (await ping(proxy))[1];
  seen.updated = (await toxic.update({ attributes: { latency: 1, jitter: 0 } })).attributes;
  seen.found = (await proxy.getToxic("late")).name;
  await toxic.remove();
  seen.down = (await proxy.update({ enabled: false, listen: proxy.listen, upstream })).enabled;
  seen.refused = (await ping(proxy).catch((error) => error)).code;
  await server.reset();
  seen.up = (await ping(proxy))[0];
  seen.again = await failed(server.createProxy({ name: "redis", listen: "127.0.0.1:0", upstream }));
  await server.populate([{ name: "other", listen: "127.0.0.1:0", upstream }]);
  seen.proxies = Object.keys(await server.getAll()).sort();
  for (const each of Object.values(await server.getAll())) await each.remove();
  seen.left = Object.keys(await server.getAll());
  console.log(JSON.stringify(seen));
})();
