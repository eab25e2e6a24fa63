// SPDX-License-Identifier: Apache-2.0

// Sends messages with Apache's gRPC client for Node.js, and receives them with a simple consumer,
// as a JSON command in the first argument says. Prints a JSON object for each event.

const { Producer, SimpleConsumer } = require('rocketmq-client-nodejs');

const fs = require('fs');

const print = event => process.stdout.write(JSON.stringify(event) + '\n');

const sleep = ms => new Promise(resolve => setTimeout(resolve, ms));

// Makes a file, and waits until it is gone.
async function pause(path) {
  fs.writeFileSync(path, '');
  while (fs.existsSync(path)) await sleep(50);
}

// Tries something again as long as an error may be one of a proxy that comes back.
async function tried(attempts, work) {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (--attempts <= 0) throw error;
      await sleep(1000);
    }
  }
}

async function main() {
  const its = JSON.parse(process.argv[2]);
  const { endpoints, topic, group, count, fifo } = its;
  const common = { endpoints, namespace: '' };
  if (its.access_key) {
    common.sessionCredentials = { accessKey: its.access_key, accessSecret: its.secret_key };
  }
  const subscriptions = new Map([[topic, '*']]);
  const consumer = new SimpleConsumer({
    ...common, consumerGroup: group, subscriptions, awaitDuration: 5000,
  });
  await consumer.startup();
  const producer = new Producer({ ...common, topics: [topic] });
  await producer.startup();
  const attempts = its.pause ? 30 : 1;
  for (let number = 0; number < count; number++) {
    if (its.pause && number === Math.floor(count / 2)) await pause(its.pause);
    const message = { topic, tag: 'tag', keys: ['key'], body: Buffer.from(`node-${number}`) };
    if (fifo) message.messageGroup = 'one';
    print({ sent: (await tried(attempts, () => producer.send(message))).messageId });
  }
  for (let got = 0; got < count;) {
    for (const message of await tried(attempts, () => consumer.receive(16, 30000))) {
      await consumer.ack(message);
      print({ body: message.body.toString() });
      got++;
    }
  }
  process.exit(0); // its log cannot be closed twice, which shutting both down would do
}

main().catch(error => {
  console.error(error);
  process.exit(1);
});
