// SPDX-License-Identifier: Apache-2.0

import com.alibaba.fastjson.JSONArray;
import com.alibaba.fastjson.JSONObject;
import java.io.Closeable;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Base64;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.apis.ClientConfiguration;
import org.apache.rocketmq.client.apis.ClientConfigurationBuilder;
import org.apache.rocketmq.client.apis.ClientServiceProvider;
import org.apache.rocketmq.client.apis.StaticSessionCredentialsProvider;
import org.apache.rocketmq.client.apis.consumer.ConsumeResult;
import org.apache.rocketmq.client.apis.consumer.FilterExpression;
import org.apache.rocketmq.client.apis.consumer.FilterExpressionType;
import org.apache.rocketmq.client.apis.consumer.SimpleConsumer;
import org.apache.rocketmq.client.apis.message.Message;
import org.apache.rocketmq.client.apis.message.MessageBuilder;
import org.apache.rocketmq.client.apis.message.MessageView;
import org.apache.rocketmq.client.apis.producer.Producer;
import org.apache.rocketmq.client.apis.producer.SendReceipt;
import org.apache.rocketmq.client.apis.producer.Transaction;
import org.apache.rocketmq.client.apis.producer.TransactionResolution;

/**
 * One JVM with any number of official gRPC clients in it, driven by the tests as Driver is: JSON
 * commands and events, one a line.
 */
public final class Grpc {
    private final ClientServiceProvider provider = ClientServiceProvider.loadService();
    private final Map<String, Closeable> clients = new ConcurrentHashMap<>();
    private final Map<String, MessageView> received = new ConcurrentHashMap<>();
    private final Wire wire;

    private Grpc(Wire wire) {
        this.wire = wire;
    }

    public static void main(String[] arguments) throws Exception {
        new Grpc(new Wire(arguments[0])).serve();
        Runtime.getRuntime().halt(0);
    }

    private void serve() {
        ExecutorService workers =
                Executors.newCachedThreadPool(
                        task -> {
                            Thread thread = new Thread(task, "command");
                            thread.setDaemon(true);
                            return thread;
                        });
        JSONObject hello = new JSONObject();
        hello.put("event", "hello");
        hello.put("version", "gRPC");
        wire.write(hello);
        for (JSONObject command = wire.read(); command != null; command = wire.read()) {
            JSONObject accepted = command;
            workers.submit(() -> wire.write(answer(accepted)));
        }
    }

    private JSONObject answer(JSONObject command) {
        JSONObject answer = new JSONObject();
        answer.put("id", command.get("id"));
        try {
            answer.put("result", run(command));
        } catch (Throwable error) {
            JSONObject description = new JSONObject();
            description.put("class", error.getClass().getName());
            description.put("code", null);
            description.put("message", error.getMessage());
            answer.put("error", description);
        }
        return answer;
    }

    private Object run(JSONObject command) throws Exception {
        String name = command.getString("name");
        switch (command.getString("op")) {
            case "start_producer":
                clients.put(name, producer(command));
                return name;
            case "start_push_consumer":
                clients.put(name, pushConsumer(command));
                return name;
            case "start_simple_consumer":
                clients.put(name, simpleConsumer(command));
                return name;
            case "send":
                return send((Producer) clients.get(name), command);
            case "send_in_transaction":
                return sendInTransaction((Producer) clients.get(name), command);
            case "recall":
                return ((Producer) clients.get(name))
                        .recallMessage(command.getString("topic"), command.getString("handle"))
                        .getMessageId()
                        .toString();
            case "receive":
                return receive((SimpleConsumer) clients.get(name), command);
            case "ack":
                ((SimpleConsumer) clients.get(name)).ack(received.get(command.getString("handle")));
                return null;
            case "change_invisible_duration":
                ((SimpleConsumer) clients.get(name))
                        .changeInvisibleDuration(
                                received.get(command.getString("handle")),
                                Duration.ofMillis(command.getLongValue("invisible_ms")));
                return null;
            case "stop":
                stop(name);
                return null;
            default:
                throw new IllegalArgumentException("no such operation: " + command);
        }
    }

    private void stop(String name) throws IOException {
        Closeable client = clients.remove(name);
        if (client != null) {
            client.close();
        }
    }

    private static ClientConfiguration configuration(JSONObject command) {
        ClientConfigurationBuilder builder = ClientConfiguration.newBuilder()
                .setEndpoints(command.getString("endpoints"))
                .setRequestTimeout(Duration.ofSeconds(10));
        if (command.containsKey("access_key")) {
            builder.setCredentialProvider(
                    new StaticSessionCredentialsProvider(
                            command.getString("access_key"), command.getString("secret_key")));
        }
        return builder.build();
    }

    /** Field "check": how open transactions end when the broker asks; without it nobody answers. */
    private Producer producer(JSONObject command) throws Exception {
        var builder =
                provider.newProducerBuilder()
                        .setClientConfiguration(configuration(command))
                        .setTopics(command.getString("topic"));
        String check = command.getString("check");
        if (check != null) {
            builder.setTransactionChecker(
                    view -> {
                        tell(command.getString("name"), "check", view);
                        return TransactionResolution.valueOf(check);
                    });
        }
        return builder.build();
    }

    /** Field "failures": how often the listener fails before it succeeds, over all messages. */
    private Closeable pushConsumer(JSONObject command) throws Exception {
        AtomicInteger failures = new AtomicInteger(command.getIntValue("failures"));
        return provider.newPushConsumerBuilder()
                .setClientConfiguration(configuration(command))
                .setConsumerGroup(command.getString("group"))
                .setSubscriptionExpressions(subscription(command))
                .setMessageListener(
                        view -> {
                            tell(command.getString("name"), "message", view);
                            return failures.getAndDecrement() > 0
                                    ? ConsumeResult.FAILURE
                                    : ConsumeResult.SUCCESS;
                        })
                .build();
    }

    private Closeable simpleConsumer(JSONObject command) throws Exception {
        return provider.newSimpleConsumerBuilder()
                .setClientConfiguration(configuration(command))
                .setConsumerGroup(command.getString("group"))
                .setAwaitDuration(Duration.ofSeconds(2))
                .setSubscriptionExpressions(subscription(command))
                .build();
    }

    private static Map<String, FilterExpression> subscription(JSONObject command) {
        String sql = command.getString("sql");
        FilterExpression expression =
                sql != null
                        ? new FilterExpression(sql, FilterExpressionType.SQL92)
                        : new FilterExpression(
                                command.getString("expression"), FilterExpressionType.TAG);
        return Collections.singletonMap(command.getString("topic"), expression);
    }

    private Object send(Producer producer, JSONObject command) throws Exception {
        JSONArray receipts = new JSONArray();
        for (Object each : command.getJSONArray("messages")) {
            SendReceipt receipt = producer.send(message((JSONObject) each));
            JSONObject json = new JSONObject();
            json.put("msg_id", receipt.getMessageId().toString());
            json.put("recall_handle", receipt.getRecallHandle());
            receipts.add(json);
        }
        return receipts;
    }

    /** Field "end": commit, rollback, or anything else to leave it open. */
    private Object sendInTransaction(Producer producer, JSONObject command) throws Exception {
        Transaction transaction = producer.beginTransaction();
        SendReceipt receipt = producer.send(message(command.getJSONObject("message")), transaction);
        if ("commit".equals(command.getString("end"))) {
            transaction.commit();
        } else if ("rollback".equals(command.getString("end"))) {
            transaction.rollback();
        }
        return receipt.getMessageId().toString();
    }

    private Message message(JSONObject json) {
        MessageBuilder builder =
                provider.newMessageBuilder()
                        .setTopic(json.getString("topic"))
                        .setBody(Base64.getDecoder().decode(json.getString("body")));
        if (json.containsKey("tags")) {
            builder.setTag(json.getString("tags"));
        }
        if (json.containsKey("keys")) {
            builder.setKeys(json.getString("keys").split(" "));
        }
        if (json.containsKey("message_group")) {
            builder.setMessageGroup(json.getString("message_group"));
        }
        if (json.containsKey("priority")) {
            builder.setPriority(json.getIntValue("priority"));
        }
        if (json.containsKey("deliver_ms")) {
            builder.setDeliveryTimestamp(json.getLongValue("deliver_ms"));
        }
        if (json.containsKey("properties")) {
            json.getJSONObject("properties")
                    .forEach((key, value) -> builder.addProperty(key, (String) value));
        }
        return builder.build();
    }

    private Object receive(SimpleConsumer consumer, JSONObject command) throws Exception {
        List<MessageView> views =
                consumer.receive(
                        command.getIntValue("max"),
                        Duration.ofMillis(command.getLongValue("invisible_ms")));
        JSONArray array = new JSONArray();
        for (MessageView view : views) {
            JSONObject json = json(view);
            String handle = view.getMessageId() + "@" + System.nanoTime();
            received.put(handle, view);
            json.put("handle", handle);
            array.add(json);
        }
        return array;
    }

    private void tell(String client, String event, MessageView view) {
        JSONObject json = new JSONObject();
        json.put("event", event);
        json.put("name", client);
        json.put("at_ms", System.currentTimeMillis());
        json.put("message", json(view));
        wire.write(json);
    }

    private static JSONObject json(MessageView view) {
        JSONObject json = new JSONObject();
        json.put("topic", view.getTopic());
        json.put("msg_id", view.getMessageId().toString());
        byte[] body = new byte[view.getBody().remaining()];
        view.getBody().duplicate().get(body);
        json.put("body", new String(Base64.getEncoder().encode(body), StandardCharsets.US_ASCII));
        json.put("tags", view.getTag().orElse(null));
        json.put("keys", String.join(" ", view.getKeys()));
        json.put("message_group", view.getMessageGroup().orElse(null));
        json.put("priority", view.getPriority().orElse(null));
        json.put("properties", view.getProperties());
        json.put("born_timestamp", view.getBornTimestamp());
        json.put("attempt", view.getDeliveryAttempt());
        return json;
    }
}
