// SPDX-License-Identifier: Apache-2.0

import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.JSONArray;
import com.alibaba.fastjson.JSONObject;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
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
        driver.operation("admin_call", this::call);
        driver.operation(
                "resume_check",
                arguments ->
                        admins.named(arguments)
                                .resumeCheckHalfMessage(
                                        arguments.getString("topic"),
                                        arguments.getString("msg_id")));
    }

    private Object start(JSONObject arguments) throws Exception {
        DefaultMQAdminExt admin = new DefaultMQAdminExt(Clients.hook(arguments));
        admin.setAdminExtGroup(arguments.getString("group"));
        Clients.configure(admin, arguments);
        admin.start();
        admins.put(arguments, admin);
        driver.started(arguments.getString("name"), admin::shutdown);
        return admin.buildMQClientId();
    }

    /**
     * Fields: method, arguments. Any method, by its name and by what it is given, since most of them
     * are not in both releases. Its result is what JSON has of the object.
     */
    private Object call(JSONObject arguments) throws Exception {
        String name = arguments.getString("method");
        JSONArray given = arguments.getJSONArray("arguments");
        for (Method method : DefaultMQAdminExt.class.getMethods()) {
            if (method.getName().equals(name) && fit(method.getParameterTypes(), given)) {
                Object[] values = new Object[given.size()];
                for (int at = 0; at < values.length; at++) {
                    values[at] = given.getObject(at, method.getGenericParameterTypes()[at]);
                }
                try {
                    return JSON.toJSON(method.invoke(admins.named(arguments), values));
                } catch (InvocationTargetException error) {
                    throw (Exception) error.getCause();
                }
            }
        }
        throw new IllegalArgumentException("not in this release: " + name + " of " + given);
    }

    private static boolean fit(Class<?>[] types, JSONArray given) {
        boolean fit = types.length == given.size();
        for (int at = 0; fit && at < types.length; at++) {
            Object value = given.get(at);
            fit =
                    (value instanceof String) == (types[at] == String.class)
                            && (value instanceof Number || value instanceof Boolean)
                                    == types[at].isPrimitive();
        }
        return fit;
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
