// SPDX-License-Identifier: Apache-2.0

import com.alibaba.fastjson.JSONArray;
import com.alibaba.fastjson.JSONObject;
import java.util.TreeMap;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/** DefaultMQAdminExt, as far as the scenarios need it. */
final class Admins {
    private final Driver driver;
    private final Clients<DefaultMQAdminExt> admins = new Clients<>();

    Admins(Driver driver) {
        this.driver = driver;
    }

    void register() {
        driver.operation("start_admin", this::start);
        driver.operation("create_topic", this::createTopic);
        driver.operation("topic_stats", this::topicStats);
        driver.operation("topic_route", this::topicRoute);
        driver.operation("messages_by_key", this::messagesByKey);
        driver.operation(
                "resume_check",
                arguments ->
                        admins.named(arguments)
                                .resumeCheckHalfMessage(
                                        arguments.getString("topic"),
                                        arguments.getString("msg_id")));
    }

    private Object start(JSONObject arguments) throws Exception {
        DefaultMQAdminExt admin = new DefaultMQAdminExt(arguments.getString("group"));
        Clients.configure(admin, arguments);
        admin.start();
        admins.put(arguments, admin);
        driver.started(arguments.getString("name"), admin::shutdown);
        return admin.buildMQClientId();
    }

    /** Fields: broker (its address), topic, queues, perm. */
    private Object createTopic(JSONObject arguments) throws Exception {
        int queues = arguments.getIntValue("queues");
        TopicConfig config =
                new TopicConfig(
                        arguments.getString("topic"),
                        queues,
                        queues,
                        arguments.getIntValue("perm"));
        admins.named(arguments).createAndUpdateTopicConfig(arguments.getString("broker"), config);
        return null;
    }

    /** Minimum and maximum offset of each queue. */
    private Object topicStats(JSONObject arguments) throws Exception {
        var stats = admins.named(arguments).examineTopicStats(arguments.getString("topic"));
        JSONArray array = new JSONArray();
        new TreeMap<>(stats.getOffsetTable())
                .forEach(
                        (queue, offsets) -> {
                            JSONObject json = Messages.json(queue);
                            json.put("min_offset", offsets.getMinOffset());
                            json.put("max_offset", offsets.getMaxOffset());
                            array.add(json);
                        });
        return array;
    }

    /** The messages of a topic that have this key, at most 32. */
    private Object messagesByKey(JSONObject arguments) throws Exception {
        return Messages.json(
                admins.named(arguments)
                        .queryMessage(
                                arguments.getString("topic"),
                                arguments.getString("key"),
                                32,
                                0,
                                Long.MAX_VALUE)
                        .getMessageList());
    }

    /** The brokers that the name server names for a topic. */
    private Object topicRoute(JSONObject arguments) throws Exception {
        var route = admins.named(arguments).examineTopicRouteInfo(arguments.getString("topic"));
        JSONObject json = new JSONObject();
        for (var broker : route.getBrokerDatas()) {
            JSONObject addresses = new JSONObject();
            broker.getBrokerAddrs().forEach((id, address) -> addresses.put(id.toString(), address));
            json.put(broker.getBrokerName(), addresses);
        }
        return json;
    }
}
