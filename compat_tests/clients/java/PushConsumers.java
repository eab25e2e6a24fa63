// SPDX-License-Identifier: Apache-2.0

import com.alibaba.fastjson.JSONArray;
import com.alibaba.fastjson.JSONObject;
import java.util.Map;
import java.util.TreeMap;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.impl.consumer.ProcessQueue;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** DefaultMQPushConsumer: every message it is given becomes an event. */
final class PushConsumers {
    private final Driver driver;
    private final Wire wire;
    private final Clients<DefaultMQPushConsumer> consumers = new Clients<>();

    PushConsumers(Driver driver, Wire wire) {
        this.driver = driver;
        this.wire = wire;
    }

    void register() {
        driver.operation("start_push_consumer", this::start);
        driver.operation("assignment", this::assignment);
        driver.operation(
                "subscribe_again",
                arguments -> {
                    subscribe(consumers.named(arguments), arguments);
                    announce(consumers.named(arguments));
                    return null;
                });
        driver.operation(
                "rebalance",
                arguments -> {
                    announce(consumers.named(arguments));
                    return null;
                });
    }

    /**
     * Fields: name, namesrv, group, topic, expression, orderly, model (CLUSTERING, BROADCASTING),
     * from (a ConsumeFromWhere), timestamp (yyyyMMddHHmmss), sql (instead of expression),
     * times_later (how often each message is sent back), later_level (the delay level of that, 1
     * without it, 0 with pop), trace, pop (whether the broker says which queues it has, and whether
     * it pops them: only of 5.x), pop_invisible_ms, hold_ms (how long the listener takes for a
     * message that it sees for the first time).
     */
    private Object start(JSONObject arguments) throws Exception {
        String name = arguments.getString("name");
        DefaultMQPushConsumer consumer =
                new DefaultMQPushConsumer(
                        arguments.getString("group"),
                        Clients.hook(arguments),
                        new AllocateMessageQueueAveragely(),
                        arguments.getBooleanValue("trace"),
                        null);
        Clients.configure(consumer, arguments);
        consumer.setConsumeThreadMin(4);
        consumer.setConsumeThreadMax(4);
        if (arguments.containsKey("model")) {
            // MessageModel is in different packages in 4.9 and 5.x.
            var model = consumer.getMessageModel();
            consumer.setMessageModel(
                    Enum.valueOf(model.getDeclaringClass(), arguments.getString("model")));
        }
        if (arguments.containsKey("from")) {
            consumer.setConsumeFromWhere(ConsumeFromWhere.valueOf(arguments.getString("from")));
        }
        if (arguments.containsKey("timestamp")) {
            consumer.setConsumeTimestamp(arguments.getString("timestamp"));
        }
        boolean isPop = arguments.getBooleanValue("pop");
        if (isPop) {
            call(consumer, "setClientRebalance", boolean.class, false);
            if (arguments.containsKey("pop_invisible_ms")) {
                long invisible = arguments.getLongValue("pop_invisible_ms");
                call(consumer, "setPopInvisibleTime", long.class, invisible);
            }
        }
        subscribe(consumer, arguments);
        if (arguments.getBooleanValue("orderly")) {
            consumer.registerMessageListener(orderly(name));
        } else {
            consumer.registerMessageListener(
                    concurrently(
                            name,
                            arguments.getIntValue("times_later"),
                            arguments.containsKey("later_level")
                                    ? arguments.getIntValue("later_level")
                                    : isPop ? 0 : 1,
                            arguments.getLongValue("hold_ms")));
        }
        consumer.start();
        announce(consumer);
        consumers.put(arguments, consumer);
        driver.started(name, consumer::shutdown);
        return consumer.buildMQClientId();
    }

    /**
     * Once more what start() ends with: it leaves out heartbeat and rebalance, for 20 s, when the
     * timer's first heartbeat happens to hold the lock, as it does on a busy machine.
     */
    static void announce(DefaultMQPushConsumer consumer) {
        var instance = consumer.getDefaultMQPushConsumerImpl().getmQClientFactory();
        instance.sendHeartbeatToAllBrokerWithLock();
        instance.rebalanceImmediately();
    }

    private static void subscribe(DefaultMQPushConsumer consumer, JSONObject arguments)
            throws Exception {
        String topic = arguments.getString("topic");
        if (arguments.containsKey("sql")) {
            consumer.subscribe(topic, MessageSelector.bySql(arguments.getString("sql")));
        } else {
            consumer.subscribe(topic, arguments.getString("expression"));
        }
    }

    /** Calls what 4.9 has not. */
    private static void call(
            DefaultMQPushConsumer consumer, String method, Class<?> type, Object value)
            throws ReflectiveOperationException {
        DefaultMQPushConsumer.class.getMethod(method, type).invoke(consumer, value);
    }

    private MessageListenerConcurrently concurrently(
            String name, int timesLater, int level, long holdMs) {
        return (messages, context) -> {
            messages.forEach(message -> report(name, message));
            context.setDelayLevelWhenNextConsume(level);
            if (holdMs > 0 && messages.get(0).getReconsumeTimes() == 0) {
                sleep(holdMs);
            }
            return messages.get(0).getReconsumeTimes() < timesLater
                    ? ConsumeConcurrentlyStatus.RECONSUME_LATER
                    : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        };
    }

    private static void sleep(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    private MessageListenerOrderly orderly(String name) {
        return (messages, context) -> {
            messages.forEach(message -> report(name, message));
            return ConsumeOrderlyStatus.SUCCESS;
        };
    }

    private void report(String name, MessageExt message) {
        long now = System.currentTimeMillis();
        JSONObject event = new JSONObject();
        event.put("event", "message");
        event.put("name", name);
        event.put("at_ms", now);
        event.put("message", Messages.json(message));
        wire.write(event);
    }

    /** The queues it has now, without those of its retry topic, and whether it holds their lock. */
    private Object assignment(JSONObject arguments) {
        DefaultMQPushConsumer consumer = consumers.named(arguments);
        Map<MessageQueue, ProcessQueue> table =
                new TreeMap<>(
                        consumer.getDefaultMQPushConsumerImpl()
                                .getRebalanceImpl()
                                .getProcessQueueTable());
        JSONArray array = new JSONArray();
        table.forEach(
                (queue, process) -> {
                    if (!queue.getTopic().startsWith("%RETRY%")) {
                        JSONObject json = Messages.json(queue);
                        json.put("locked", process.isLocked());
                        array.add(json);
                    }
                });
        return array;
    }
}
