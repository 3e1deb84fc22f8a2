// A worker does a job; ten seconds after the next one was asked for, another is added. Takes ports.
// Says whether the worker thinks it runs, and which jobs it did.
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";

const { Queue, Worker } = createRequire(process.cwd() + "/")("bullmq");
const [port, direct] = process.argv.slice(2).map(Number);
const done = [];
const connection = { host: "127.0.0.1", port, maxRetriesPerRequest: null };
const worker = new Worker("q", async (job) => void done.push(job.name), { connection });
worker.on("error", () => {});
const queue = new Queue("q", { connection: { host: "127.0.0.1", port: direct } });

async function within(seconds, holds) {
  for (const end = Date.now() + seconds * 1000; !holds() && Date.now() < end; ) await sleep(20);
}

await worker.waitUntilReady();
await queue.add("first", {});
await within(10, () => done.includes("first"));
await sleep(10_000);
await queue.add("second", {});
await within(10, () => done.includes("second"));
console.log(JSON.stringify({ running: worker.isRunning(), done }));
process.exit();
