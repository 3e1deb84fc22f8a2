// An app whose one page is limited by rate-limit-redis; says the status of each of four requests. Takes ports.
import { createRequire } from "node:module";

const require = createRequire(process.cwd() + "/");
const express = require("express");
const { rateLimit } = require("express-rate-limit");
const { createClient } = require("redis");
const limiter = require("rate-limit-redis");
const RedisStore = limiter.RedisStore ?? limiter.default ?? limiter;

const client = createClient({ socket: { host: "127.0.0.1", port: Number(process.argv[2]) } });
await client.connect();
const store = new RedisStore({ sendCommand: (...args) => client.sendCommand(args) });
const app = express();
app.use(rateLimit({ windowMs: 60_000, max: 100, store }));
app.get("/", (_, response) => response.send("hello"));
// Otherwise the error is printed as well.
app.use((_error, _request, response, _next) => response.status(500).end());
const server = await new Promise((resolve) => {
  const starting = app.listen(0, "127.0.0.1", () => resolve(starting));
});
const statuses = [];
for (let i = 0; i < 4; i++) statuses.push((await fetch(`http://127.0.0.1:${server.address().port}/`)).status);
console.log(JSON.stringify(statuses));
process.exit();
