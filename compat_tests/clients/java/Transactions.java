// SPDX-License-Identifier: Apache-2.0

import com.alibaba.fastjson.JSONArray;
import com.alibaba.fastjson.JSONObject;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.client.producer.TransactionSendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * TransactionMQProducer: the messages themselves say what becomes of their transactions.
 *
 * <p>The user property "local" is what the local transaction ends with (commit, rollback, unknown,
 * or hang, which never ends), "check" what is answered when the broker asks. Each question is
 * reported.
 */
final class Transactions {
    private final Driver driver;
    private final Wire wire;
    private final Clients<TransactionMQProducer> producers = new Clients<>();

    Transactions(Driver driver, Wire wire) {
        this.driver = driver;
        this.wire = wire;
    }

    void register() {
        driver.operation("start_transaction_producer", this::start);
        driver.operation("send_in_transaction", this::send);
    }

    /** Fields: name, namesrv, group, heartbeat_ms. */
    private Object start(JSONObject arguments) throws Exception {
        TransactionMQProducer producer = new TransactionMQProducer(arguments.getString("group"));
        Clients.configure(producer, arguments);
        producer.setSendMsgTimeout(10_000);
        producer.setTransactionListener(new Listener(arguments.getString("name")));
        producer.start();
        producers.put(arguments, producer);
        driver.started(arguments.getString("name"), producer::shutdown);
        return producer.buildMQClientId();
    }

    private Object send(JSONObject arguments) throws Exception {
        TransactionMQProducer producer = producers.named(arguments);
        JSONArray array = arguments.getJSONArray("messages");
        JSONArray results = new JSONArray();
        for (int i = 0; i < array.size(); i++) {
            JSONObject json = array.getJSONObject(i);
            TransactionSendResult sent =
                    producer.sendMessageInTransaction(Messages.message(json), null);
            JSONObject result = Messages.json(sent);
            result.put("state", sent.getLocalTransactionState().name());
            results.add(result);
        }
        return results;
    }

    private final class Listener implements TransactionListener {
        private final String name;

        Listener(String name) {
            this.name = name;
        }

        @Override
        public LocalTransactionState executeLocalTransaction(Message message, Object argument) {
            return state(message.getUserProperty("local"));
        }

        @Override
        public LocalTransactionState checkLocalTransaction(MessageExt message) {
            JSONObject event = new JSONObject();
            event.put("event", "check");
            event.put("name", name);
            event.put("transaction_id", message.getTransactionId());
            event.put("at_ms", System.currentTimeMillis());
            event.put("message", Messages.json(message));
            wire.write(event);
            return state(message.getUserProperty("check"));
        }
    }

    private static LocalTransactionState state(String word) {
        switch (word == null ? "unknown" : word) {
            case "commit":
                return LocalTransactionState.COMMIT_MESSAGE;
            case "rollback":
                return LocalTransactionState.ROLLBACK_MESSAGE;
            case "hang":
                try {
                    Thread.sleep(Long.MAX_VALUE);
                } catch (InterruptedException ended) {
                    Thread.currentThread().interrupt();
                }
                return LocalTransactionState.UNKNOW;
            default:
                return LocalTransactionState.UNKNOW;
        }
    }
}
