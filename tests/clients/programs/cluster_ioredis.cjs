// ioredis' cluster client: see cluster.cjs.
const { Cluster } = require("module").createRequire(process.cwd() + "/")("ioredis");

const connect = (port) => {
  const client = new Cluster([{ host: "127.0.0.1", port }]);
  return client.on("error", () => {});
};

require("./cluster.cjs")(connect, (client) => client.disconnect());
