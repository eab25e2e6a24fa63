// SPDX-License-Identifier: Apache-2.0

import com.alibaba.fastjson.JSONObject;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.RequestCallback;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** Request and reply: a producer that asks, and a consumer that answers with a producer. */
final class Requests {
    private final Driver driver;
    private final Wire wire;
    private final Clients<DefaultMQProducer> askers = new Clients<>();

    Requests(Driver driver, Wire wire) {
        this.driver = driver;
        this.wire = wire;
    }

    void register() {
        driver.operation("start_asker", this::startAsker);
        driver.operation("start_replier", this::startReplier);
        driver.operation("request", this::request);
    }

    /** Fields: name, namesrv, group. */
    private Object startAsker(JSONObject arguments) throws Exception {
        DefaultMQProducer asker = new DefaultMQProducer(arguments.getString("group"));
        Clients.configure(asker, arguments);
        asker.setSendMsgTimeout(10_000);
        asker.start();
        askers.put(arguments, asker);
        driver.started(arguments.getString("name"), asker::shutdown);
        return asker.buildMQClientId();
    }

    /**
     * Fields: message, mode (sync, async), timeout_ms. The reply; what an asynchronous request
     * fails with is thrown, as by a synchronous one.
     */
    private Object request(JSONObject arguments) throws Exception {
        DefaultMQProducer asker = askers.named(arguments);
        Message message = Messages.message(arguments.getJSONObject("message"));
        long timeoutMs = arguments.getLongValue("timeout_ms");
        if (!"async".equals(arguments.getString("mode"))) {
            return described(asker.request(message, timeoutMs));
        }
        CompletableFuture<Message> reply = new CompletableFuture<>();
        asker.request(
                message,
                new RequestCallback() {
                    @Override
                    public void onSuccess(Message received) {
                        if (received != null) { // it is called when the request is sent, too
                            reply.complete(received);
                        }
                    }

                    @Override
                    public void onException(Throwable error) {
                        reply.completeExceptionally(error);
                    }
                },
                timeoutMs);
        try {
            return described(reply.get(timeoutMs + 10_000, TimeUnit.MILLISECONDS));
        } catch (java.util.concurrent.ExecutionException failed) {
            throw (Exception) failed.getCause();
        }
    }

    private static JSONObject described(Message reply) {
        return Messages.json((MessageExt) reply);
    }

    /**
     * Fields: name, namesrv, topic, group, delay_ms (before it replies), compress_over_bytes. The
     * body of a reply is "re: " and that of the request; each outcome is reported.
     */
    private Object startReplier(JSONObject arguments) throws Exception {
        String name = arguments.getString("name");
        JSONObject other = new JSONObject(arguments);
        other.put("name", name + "-replies");
        DefaultMQProducer producer = new DefaultMQProducer(arguments.getString("group") + "-replies");
        Clients.configure(producer, other);
        producer.setSendMsgTimeout(15_000);
        if (arguments.containsKey("compress_over_bytes")) {
            producer.setCompressMsgBodyOverHowmuch(arguments.getIntValue("compress_over_bytes"));
        }
        producer.start();
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(arguments.getString("group"));
        Clients.configure(consumer, arguments);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(arguments.getString("topic"), "*");
        long delayMs = arguments.getLongValue("delay_ms");
        consumer.registerMessageListener(
                (MessageListenerConcurrently)
                        (messages, context) -> {
                            for (MessageExt message : messages) {
                                reply(name, producer, message, delayMs);
                            }
                            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
                        });
        consumer.start();
        PushConsumers.announce(consumer);
        driver.started(
                name,
                () -> {
                    consumer.shutdown();
                    producer.shutdown();
                });
        return consumer.buildMQClientId();
    }

    private void reply(String name, DefaultMQProducer producer, MessageExt asked, long delayMs) {
        JSONObject event = new JSONObject();
        event.put("event", "reply");
        event.put("name", name);
        try {
            Thread.sleep(delayMs);
            byte[] body = asked.getBody();
            byte[] answer = new byte[body.length + 4];
            System.arraycopy("re: ".getBytes(), 0, answer, 0, 4);
            System.arraycopy(body, 0, answer, 4, body.length);
            Message reply = MessageUtil.createReplyMessage(asked, answer);
            reply.setFlag(7);
            event.put("topic", reply.getTopic());
            event.put("result", Messages.json(producer.send(reply)));
        } catch (Exception error) {
            event.put("error", Driver.describe(error));
        }
        wire.write(event);
    }
}
