// SPDX-License-Identifier: Apache-2.0

import com.alibaba.fastjson.JSONObject;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.common.message.MessageQueue;

/** DefaultMQPullConsumer: pulls on command; offsets of queues and of the group. */
final class PullConsumers {
    private final Driver driver;
    private final Clients<DefaultMQPullConsumer> consumers = new Clients<>();

    PullConsumers(Driver driver) {
        this.driver = driver;
    }

    void register() {
        driver.operation("start_pull_consumer", this::start);
        driver.operation("pull", this::pull);
        driver.operation(
                "subscribe_queues",
                arguments ->
                        Messages.queues(
                                consumers
                                        .named(arguments)
                                        .fetchSubscribeMessageQueues(
                                                arguments.getString("topic"))));
        driver.operation(
                "max_offset", arguments -> consumers.named(arguments).maxOffset(queue(arguments)));
        driver.operation(
                "min_offset", arguments -> consumers.named(arguments).minOffset(queue(arguments)));
        driver.operation(
                "search_offset",
                arguments ->
                        consumers
                                .named(arguments)
                                .searchOffset(
                                        queue(arguments), arguments.getLongValue("timestamp_ms")));
        driver.operation(
                "earliest_store_time",
                arguments -> consumers.named(arguments).earliestMsgStoreTime(queue(arguments)));
        driver.operation(
                "fetch_offset",
                arguments ->
                        consumers.named(arguments).fetchConsumeOffset(queue(arguments), true));
        driver.operation("store_offset", this::storeOffset);
    }

    private Object start(JSONObject arguments) throws Exception {
        DefaultMQPullConsumer consumer = new DefaultMQPullConsumer(arguments.getString("group"));
        Clients.configure(consumer, arguments);
        consumer.start();
        consumers.put(arguments, consumer);
        driver.started(arguments.getString("name"), consumer::shutdown);
        return consumer.buildMQClientId();
    }

    /**
     * Fields: queue, expression or sql, offset, max (messages), block (wait when there are none; not
     * with sql).
     */
    private Object pull(JSONObject arguments) throws Exception {
        DefaultMQPullConsumer consumer = consumers.named(arguments);
        MessageQueue queue = queue(arguments);
        String expression = arguments.getString("expression");
        long offset = arguments.getLongValue("offset");
        int max = arguments.getIntValue("max");
        long began = System.nanoTime();
        PullResult result;
        if (arguments.containsKey("sql")) {
            MessageSelector selector = MessageSelector.bySql(arguments.getString("sql"));
            // Only from the answer to a heartbeat does the client know that the broker can do it.
            var instance =
                    consumer.getDefaultMQPullConsumerImpl().getRebalanceImpl().getmQClientFactory();
            instance.updateTopicRouteInfoFromNameServer(queue.getTopic());
            instance.sendHeartbeatToAllBrokerWithLock();
            result = consumer.pull(queue, selector, offset, max);
        } else if (arguments.getBooleanValue("block")) {
            result = consumer.pullBlockIfNotFound(queue, expression, offset, max);
        } else {
            result = consumer.pull(queue, expression, offset, max);
        }
        JSONObject json = new JSONObject();
        json.put("took_ms", (System.nanoTime() - began) / 1_000_000);
        json.put("status", result.getPullStatus().name());
        json.put("next_offset", result.getNextBeginOffset());
        json.put("min_offset", result.getMinOffset());
        json.put("max_offset", result.getMaxOffset());
        if (result.getMsgFoundList() != null) {
            json.put("messages", Messages.json(result.getMsgFoundList()));
        }
        return json;
    }

    private Object storeOffset(JSONObject arguments) throws Exception {
        DefaultMQPullConsumer consumer = consumers.named(arguments);
        MessageQueue queue = queue(arguments);
        consumer.updateConsumeOffset(queue, arguments.getLongValue("offset"));
        consumer.getOffsetStore().persist(queue);
        return null;
    }

    private static MessageQueue queue(JSONObject arguments) {
        return Messages.queue(arguments.getJSONObject("queue"));
    }
}
