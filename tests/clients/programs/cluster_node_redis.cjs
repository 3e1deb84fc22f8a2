// npm redis' cluster client: see cluster.cjs.
const { createCluster } = require("module").createRequire(process.cwd() + "/")("redis");

const connect = async (port) => {
  const client = createCluster({ rootNodes: [{ url: `redis://127.0.0.1:${port}` }] });
  return client.on("error", () => {}).connect();
};

require("./cluster.cjs")(connect, (client) => client.destroy());
