// SPDX-License-Identifier: Apache-2.0

import com.alibaba.fastjson.JSONArray;
import com.alibaba.fastjson.JSONObject;
import java.math.BigInteger;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageClientExt;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Messages, queues and results as JSON. */
final class Messages {
    /** Bodies up to this size are reported whole, larger ones by size and digest only. */
    private static final int BODY_REPORTED_BYTES = 4096;

    private Messages() {}

    /**
     * Fields: topic, body (base64), tags, keys, flag, properties, delay_level; of 5.x: delay_sec,
     * delay_ms, deliver_ms; own: properties that no setter takes.
     */
    static Message message(JSONObject json) {
        Message message =
                new Message(
                        json.getString("topic"), Base64.getDecoder().decode(json.getString("body")));
        if (json.containsKey("tags")) {
            message.setTags(json.getString("tags"));
        }
        if (json.containsKey("keys")) {
            message.setKeys(json.getString("keys"));
        }
        if (json.containsKey("flag")) {
            message.setFlag(json.getIntValue("flag"));
        }
        if (json.containsKey("delay_level")) {
            message.setDelayTimeLevel(json.getIntValue("delay_level"));
        }
        Timers.set(message, json);
        if (json.containsKey("own")) {
            for (Map.Entry<String, Object> entry : json.getJSONObject("own").entrySet()) {
                MessageAccessor.putProperty(message, entry.getKey(), (String) entry.getValue());
            }
        }
        if (json.containsKey("properties")) {
            for (Map.Entry<String, Object> entry : json.getJSONObject("properties").entrySet()) {
                message.putUserProperty(entry.getKey(), (String) entry.getValue());
            }
        }
        return message;
    }

    static List<Message> messages(JSONArray array) {
        List<Message> messages = new ArrayList<>();
        for (int i = 0; i < array.size(); i++) {
            messages.add(message(array.getJSONObject(i)));
        }
        return messages;
    }

    static JSONObject json(MessageExt message) {
        JSONObject json = new JSONObject();
        byte[] body = message.getBody();
        json.put("topic", message.getTopic());
        json.put("broker", message.getBrokerName());
        json.put("queue_id", message.getQueueId());
        json.put("queue_offset", message.getQueueOffset());
        json.put("msg_id", message.getMsgId());
        if (message instanceof MessageClientExt) {
            json.put("offset_msg_id", ((MessageClientExt) message).getOffsetMsgId());
        }
        json.put("sys_flag", message.getSysFlag());
        json.put("flag", message.getFlag());
        json.put("tags", message.getTags());
        json.put("keys", message.getKeys());
        json.put("properties", message.getProperties());
        json.put("reconsume_times", message.getReconsumeTimes());
        json.put("store_size", message.getStoreSize());
        json.put("born_timestamp", message.getBornTimestamp());
        json.put("store_timestamp", message.getStoreTimestamp());
        json.put("body_bytes", body.length);
        json.put("body_sha256", sha256(body));
        if (body.length <= BODY_REPORTED_BYTES) {
            json.put("body", Base64.getEncoder().encodeToString(body));
        }
        return json;
    }

    static JSONArray json(Collection<MessageExt> messages) {
        JSONArray array = new JSONArray();
        for (MessageExt message : messages) {
            array.add(json(message));
        }
        return array;
    }

    static JSONObject json(SendResult result) {
        JSONObject json = new JSONObject();
        json.put("status", result.getSendStatus().name());
        json.put("msg_id", result.getMsgId());
        json.put("offset_msg_id", result.getOffsetMsgId());
        json.put("queue", json(result.getMessageQueue()));
        json.put("queue_offset", result.getQueueOffset());
        json.put("transaction_id", result.getTransactionId());
        json.put("region_id", result.getRegionId());
        json.put("recall_handle", Timers.recallHandle(result));
        return json;
    }

    static JSONObject json(MessageQueue queue) {
        JSONObject json = new JSONObject();
        json.put("topic", queue.getTopic());
        json.put("broker", queue.getBrokerName());
        json.put("queue_id", queue.getQueueId());
        return json;
    }

    static JSONArray queues(Collection<MessageQueue> queues) {
        JSONArray array = new JSONArray();
        queues.stream().sorted().forEach(queue -> array.add(json(queue)));
        return array;
    }

    static MessageQueue queue(JSONObject json) {
        return new MessageQueue(
                json.getString("topic"), json.getString("broker"), json.getIntValue("queue_id"));
    }

    private static String sha256(byte[] body) {
        try {
            byte[] digest = MessageDigest.getInstance("SHA-256").digest(body);
            return String.format("%064x", new BigInteger(1, digest));
        } catch (java.security.NoSuchAlgorithmException error) {
            throw new IllegalStateException(error);
        }
    }
}
