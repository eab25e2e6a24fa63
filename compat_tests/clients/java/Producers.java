// SPDX-License-Identifier: Apache-2.0

import com.alibaba.fastjson.JSONArray;
import com.alibaba.fastjson.JSONObject;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.MessageQueueSelector;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.selector.SelectMessageQueueByHash;
import org.apache.rocketmq.common.compression.CompressionType;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueue;

/** DefaultMQProducer: start it, send in every mode. */
final class Producers {
    private static final long ASYNC_WAIT_S = 30;

    private final Driver driver;
    private final Clients<DefaultMQProducer> producers = new Clients<>();

    Producers(Driver driver) {
        this.driver = driver;
    }

    void register() {
        driver.operation("start_producer", this::start);
        driver.operation("send", this::send);
        driver.operation("send_batches", this::sendBatches);
        driver.operation(
                "recall",
                arguments ->
                        Timers.recall(
                                producers.named(arguments),
                                arguments.getString("topic"),
                                arguments.getString("handle")));
        driver.operation(
                "publish_queues",
                arguments ->
                        Messages.queues(
                                producers.named(arguments)
                                        .fetchPublishMessageQueues(arguments.getString("topic"))));
    }

    /** Fields: name, namesrv, group, max_message_bytes, compress_over_bytes, compression, trace. */
    private Object start(JSONObject arguments) throws Exception {
        DefaultMQProducer producer =
                new DefaultMQProducer(
                        arguments.getString("group"),
                        Clients.hook(arguments),
                        arguments.getBooleanValue("trace"),
                        null);
        Clients.configure(producer, arguments);
        producer.setSendMsgTimeout(10_000);
        if (arguments.containsKey("max_message_bytes")) {
            producer.setMaxMessageSize(arguments.getIntValue("max_message_bytes"));
        }
        if (arguments.containsKey("compress_over_bytes")) {
            producer.setCompressMsgBodyOverHowmuch(arguments.getIntValue("compress_over_bytes"));
        }
        if (arguments.containsKey("compression")) {
            compressWith(producer, CompressionType.of(arguments.getString("compression")));
        }
        producer.start();
        producers.put(arguments, producer);
        driver.started(arguments.getString("name"), producer::shutdown);
        return producer.buildMQClientId();
    }

    /** The setter is on the producer in 5.x and on its inner part in 4.9. */
    private static void compressWith(DefaultMQProducer producer, CompressionType type)
            throws ReflectiveOperationException {
        Object owner = producer;
        try {
            owner.getClass().getMethod("setCompressType", CompressionType.class);
        } catch (NoSuchMethodException inner) {
            owner = producer.getDefaultMQProducerImpl();
        }
        owner.getClass().getMethod("setCompressType", CompressionType.class).invoke(owner, type);
    }

    /**
     * Sends each of messages in order. Fields: mode (sync, async, oneway), queue (straight to this
     * one, whatever the route says); a message with a "shard" goes to the queue of its hash; else
     * round robin.
     */
    private Object send(JSONObject arguments) throws Exception {
        DefaultMQProducer producer = producers.named(arguments);
        String mode = arguments.containsKey("mode") ? arguments.getString("mode") : "sync";
        JSONArray array = arguments.getJSONArray("messages");
        JSONArray results = new JSONArray();
        for (int i = 0; i < array.size(); i++) {
            JSONObject json = array.getJSONObject(i);
            Message message = Messages.message(json);
            if (arguments.containsKey("queue")) {
                MessageQueue queue = Messages.queue(arguments.getJSONObject("queue"));
                results.add(sendTo(producer, mode, message, queue));
            } else if (json.containsKey("shard")) {
                results.add(sendSharded(producer, mode, message, json.getString("shard")));
            } else {
                results.add(sendAnywhere(producer, mode, message));
            }
        }
        for (int i = 0; i < results.size(); i++) {
            if (results.get(i) instanceof Pending) {
                results.set(i, outcome(((Pending) results.get(i)).result));
            }
        }
        return results;
    }

    private static Object sendAnywhere(DefaultMQProducer producer, String mode, Message message)
            throws Exception {
        switch (mode) {
            case "sync":
                return Messages.json(producer.send(message));
            case "async":
                Pending pending = new Pending();
                producer.send(message, pending);
                return pending;
            case "oneway":
                producer.sendOneway(message);
                return null;
            default:
                throw new IllegalArgumentException("no such mode: " + mode);
        }
    }

    private static Object sendSharded(
            DefaultMQProducer producer, String mode, Message message, String shard)
            throws Exception {
        MessageQueueSelector selector = new SelectMessageQueueByHash();
        switch (mode) {
            case "sync":
                return Messages.json(producer.send(message, selector, shard));
            case "async":
                Pending pending = new Pending();
                producer.send(message, selector, shard, pending);
                return pending;
            case "oneway":
                producer.sendOneway(message, selector, shard);
                return null;
            default:
                throw new IllegalArgumentException("no such mode: " + mode);
        }
    }

    private static Object sendTo(
            DefaultMQProducer producer, String mode, Message message, MessageQueue queue)
            throws Exception {
        switch (mode) {
            case "sync":
                return Messages.json(producer.send(message, queue));
            case "async":
                Pending pending = new Pending();
                producer.send(message, queue, pending);
                return pending;
            case "oneway":
                producer.sendOneway(message, queue);
                return null;
            default:
                throw new IllegalArgumentException("no such mode: " + mode);
        }
    }

    private static Object outcome(CompletableFuture<?> pending) throws Exception {
        try {
            return Messages.json((SendResult) pending.get(ASYNC_WAIT_S, TimeUnit.SECONDS));
        } catch (java.util.concurrent.ExecutionException failed) {
            JSONObject json = new JSONObject();
            json.put("error", Driver.describe(failed.getCause()));
            return json;
        }
    }

    /**
     * Sends batches one after the other; with queue, straight to it, whatever the route says. They
     * are sent in one thread, as each thread of a client begins its round of the queues at random.
     */
    private Object sendBatches(JSONObject arguments) throws Exception {
        DefaultMQProducer producer = producers.named(arguments);
        JSONArray batches = arguments.getJSONArray("batches");
        JSONObject queue = arguments.getJSONObject("queue");
        JSONArray results = new JSONArray();
        for (int i = 0; i < batches.size(); i++) {
            List<Message> batch = Messages.messages(batches.getJSONArray(i));
            results.add(
                    Messages.json(
                            queue == null
                                    ? producer.send(batch)
                                    : producer.send(batch, Messages.queue(queue))));
        }
        return results;
    }

    private static final class Pending implements SendCallback {
        final CompletableFuture<SendResult> result = new CompletableFuture<>();

        @Override
        public void onSuccess(SendResult sent) {
            result.complete(sent);
        }

        @Override
        public void onException(Throwable error) {
            result.completeExceptionally(error);
        }
    }
}
