// SPDX-License-Identifier: Apache-2.0

import com.alibaba.fastjson.JSONArray;
import com.alibaba.fastjson.JSONObject;
import java.util.Map;
import java.util.TreeMap;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
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
                "rebalance",
                arguments -> {
                    announce(consumers.named(arguments));
                    return null;
                });
    }

    /**
     * Fields: name, namesrv, group, topic, expression, orderly, model (CLUSTERING, BROADCASTING),
     * from (a ConsumeFromWhere), timestamp (yyyyMMddHHmmss).
     */
    private Object start(JSONObject arguments) throws Exception {
        String name = arguments.getString("name");
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(arguments.getString("group"));
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
        consumer.subscribe(arguments.getString("topic"), arguments.getString("expression"));
        if (arguments.getBooleanValue("orderly")) {
            consumer.registerMessageListener(orderly(name));
        } else {
            consumer.registerMessageListener(concurrently(name));
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
    private static void announce(DefaultMQPushConsumer consumer) {
        var instance = consumer.getDefaultMQPushConsumerImpl().getmQClientFactory();
        instance.sendHeartbeatToAllBrokerWithLock();
        instance.rebalanceImmediately();
    }

    private MessageListenerConcurrently concurrently(String name) {
        return (messages, context) -> {
            messages.forEach(message -> report(name, message));
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        };
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
