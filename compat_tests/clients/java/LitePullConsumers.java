// SPDX-License-Identifier: Apache-2.0

import com.alibaba.fastjson.JSONArray;
import com.alibaba.fastjson.JSONObject;
import java.util.ArrayList;
import java.util.List;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageQueue;

/** DefaultLitePullConsumer: subscribed or assigned, polled on command. */
final class LitePullConsumers {
    private final Driver driver;
    private final Clients<DefaultLitePullConsumer> consumers = new Clients<>();

    LitePullConsumers(Driver driver) {
        this.driver = driver;
    }

    void register() {
        driver.operation("start_lite_consumer", this::start);
        driver.operation(
                "poll",
                arguments ->
                        Messages.json(
                                consumers
                                        .named(arguments)
                                        .poll(arguments.getLongValue("timeout_ms"))));
        driver.operation("lite_assignment", this::assignment);
        driver.operation("seek", this::seek);
        driver.operation("commit", this::commit);
        driver.operation(
                "committed", arguments -> consumers.named(arguments).committed(queue(arguments)));
        driver.operation(
                "offset_for_timestamp",
                arguments ->
                        consumers
                                .named(arguments)
                                .offsetForTimestamp(
                                        queue(arguments), arguments.getLong("timestamp_ms")));
    }

    /** Fields: name, namesrv, group, topic and expression or sql, or queues; auto_commit, from. */
    private Object start(JSONObject arguments) throws Exception {
        DefaultLitePullConsumer consumer =
                new DefaultLitePullConsumer(arguments.getString("group"));
        Clients.configure(consumer, arguments);
        consumer.setPullThreadNums(4);
        consumer.setAutoCommit(arguments.getBooleanValue("auto_commit"));
        consumer.setConsumeFromWhere(
                ConsumeFromWhere.valueOf(
                        arguments.containsKey("from")
                                ? arguments.getString("from")
                                : "CONSUME_FROM_FIRST_OFFSET"));
        if (arguments.containsKey("queues")) {
            consumer.start();
            consumer.assign(queues(arguments.getJSONArray("queues")));
        } else if (arguments.containsKey("sql")) {
            consumer.subscribe(
                    arguments.getString("topic"),
                    MessageSelector.bySql(arguments.getString("sql")));
            consumer.start();
        } else {
            consumer.subscribe(arguments.getString("topic"), arguments.getString("expression"));
            consumer.start();
        }
        consumers.put(arguments, consumer);
        driver.started(arguments.getString("name"), consumer::shutdown);
        return consumer.buildMQClientId();
    }

    private Object assignment(JSONObject arguments) throws Exception {
        return Messages.queues(consumers.named(arguments).assignment());
    }

    /** Field to: begin, end, or an offset. */
    private Object seek(JSONObject arguments) throws Exception {
        DefaultLitePullConsumer consumer = consumers.named(arguments);
        MessageQueue queue = queue(arguments);
        switch (arguments.getString("to")) {
            case "begin":
                consumer.seekToBegin(queue);
                break;
            case "end":
                consumer.seekToEnd(queue);
                break;
            default:
                consumer.seek(queue, arguments.getLongValue("to"));
        }
        return null;
    }

    private Object commit(JSONObject arguments) {
        DefaultLitePullConsumer consumer = consumers.named(arguments);
        consumer.commitSync();
        return null;
    }

    private static List<MessageQueue> queues(JSONArray array) {
        List<MessageQueue> queues = new ArrayList<>();
        for (int i = 0; i < array.size(); i++) {
            queues.add(Messages.queue(array.getJSONObject(i)));
        }
        return queues;
    }

    private static MessageQueue queue(JSONObject arguments) {
        return Messages.queue(arguments.getJSONObject("queue"));
    }
}
