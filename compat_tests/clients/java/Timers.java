// SPDX-License-Identifier: Apache-2.0

import com.alibaba.fastjson.JSONObject;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;

/** Timer messages and how they are taken back: in 5.x only, so all of it by reflection. */
final class Timers {
    private static final String[][] SETTERS = {
        {"delay_sec", "setDelayTimeSec"},
        {"delay_ms", "setDelayTimeMs"},
        {"deliver_ms", "setDeliverTimeMs"},
    };

    private Timers() {}

    /** Sets when a message is to be delivered, if that is said. */
    static void set(Message message, JSONObject json) {
        for (String[] each : SETTERS) {
            if (json.containsKey(each[0])) {
                try {
                    Message.class
                            .getMethod(each[1], long.class)
                            .invoke(message, json.getLongValue(each[0]));
                } catch (ReflectiveOperationException error) {
                    throw new IllegalArgumentException("not in this release: " + each[1], error);
                }
            }
        }
    }

    /** The handle in a result; null without one, or in 4.9. */
    static String recallHandle(SendResult result) {
        try {
            return (String) SendResult.class.getMethod("getRecallHandle").invoke(result);
        } catch (ReflectiveOperationException error) {
            return null;
        }
    }

    /** Takes a message back; the id that the broker tells. */
    static String recall(DefaultMQProducer producer, String topic, String handle) throws Exception {
        try {
            return (String)
                    DefaultMQProducer.class
                            .getMethod("recallMessage", String.class, String.class)
                            .invoke(producer, topic, handle);
        } catch (java.lang.reflect.InvocationTargetException error) {
            throw (Exception) error.getCause();
        }
    }
}
