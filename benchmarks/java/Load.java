// SPDX-License-Identifier: Apache-2.0
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.LongAdder;
import org.apache.rocketmq.acl.common.AclClientRPCHook;
import org.apache.rocketmq.acl.common.SessionCredentials;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.RPCHook;

/**
 * One load on the official client, then exit: {@code Load NAMESRV TOPIC MODE [name=value ...]}.
 *
 * <p>Modes: sync, batch, async, oneway, transaction, timer, drain, lite, latency; properties=N gives each message so many
 * properties of the user's own. Standard output carries one JSON object per line:
 * {"event":"start"} and {"event":"end"} stand at the edges of the measured window (the harness
 * reads the server's CPU time there), {"event":"result", ...} is the answer.
 */
public final class Load {
    private static final int QUEUES = 8;
    private static final long NO_LIMIT = Long.MAX_VALUE;
    private static final String[][] PROPERTIES = {
        {"tenant", "acme-42"}, {"region", "eu-central-1"}, {"trace", "0af7651916cd43dd8448eb211c80319c"},
    };

    private final String namesrv;
    private final String topic;
    private final String[] options;
    private final LongAdder sent = new LongAdder();
    private final LongAdder failed = new LongAdder();
    private final AtomicReference<String> firstError = new AtomicReference<>();
    private volatile boolean running = true;

    private Load(String namesrv, String topic, String[] options) {
        this.namesrv = namesrv;
        this.topic = topic;
        this.options = options;
    }

    public static void main(String[] args) throws Exception {
        if (args.length < 3) {
            System.err.println("usage: Load NAMESRV TOPIC sync|batch|async|oneway|transaction|timer|drain|lite|latency [name=value ...]");
            System.exit(2);
        }
        Load load = new Load(args[0], args[1], Arrays.copyOfRange(args, 3, args.length));
        switch (args[2]) {
            case "sync": load.sync(); break;
            case "batch": load.batch(); break;
            case "async": load.async(); break;
            case "oneway": load.oneway(); break;
            case "transaction": load.transaction(); break;
            case "timer": load.timer(); break;
            case "drain": load.drain(); break;
            case "lite": load.lite(); break;
            case "latency": load.latency(); break;
            default:
                System.err.println("no such mode: " + args[2]);
                System.exit(2);
        }
        System.exit(0); // the client's shutdown waits for its timers; the harness need not
    }

    /** What a thread does again and again; answers how many messages it got through. */
    private interface Step {
        int run() throws Exception;
    }

    private void sync() throws Exception {
        DefaultMQProducer producer = producer();
        byte[] body = body(option("bytes", 1024));
        measureSends("sync", option("threads", 1), NO_LIMIT, () -> {
            SendResult result = producer.send(message(body));
            return result.getSendStatus() == SendStatus.SEND_OK ? 1 : 0;
        });
    }

    private void batch() throws Exception {
        DefaultMQProducer producer = producer();
        measureSends("batch", option("threads", 4), NO_LIMIT, batchStep(producer));
    }

    private Step batchStep(DefaultMQProducer producer) {
        int count = option("batch", 32);
        byte[] body = body(option("bytes", 128));
        return () -> {
            List<Message> messages = new ArrayList<>(count);
            for (int i = 0; i < count; i++) {
                messages.add(message(body));
            }
            SendResult result = producer.send(messages);
            return result.getSendStatus() == SendStatus.SEND_OK ? count : 0;
        };
    }

    private void async() throws Exception {
        DefaultMQProducer producer = producer();
        byte[] body = body(option("bytes", 1024));
        Semaphore inFlight = new Semaphore(option("in-flight", 512));
        SendCallback callback = new SendCallback() {
            @Override
            public void onSuccess(SendResult result) {
                inFlight.release();
                if (result.getSendStatus() == SendStatus.SEND_OK) {
                    sent.increment();
                } else {
                    failed.increment();
                }
            }

            @Override
            public void onException(Throwable error) {
                inFlight.release();
                failed(error);
            }
        };
        measureSends("async", option("threads", 2), NO_LIMIT, () -> {
            inFlight.acquire();
            producer.send(message(body), callback);
            return 0; // the callback counts
        });
    }

    /** Nobody answers, so what the broker has stored is counted, by the offsets of its queues. */
    private void oneway() throws Exception {
        DefaultMQProducer producer = producer();
        DefaultMQProducer meter = new DefaultMQProducer("bench-meter");
        meter.setNamesrvAddr(namesrv);
        meter.setInstanceName("meter"); // a connection of its own: that of the load has a queue
        meter.start();
        makeTopic(producer);
        byte[] body = body(option("bytes", 1024));
        runThreads(option("threads", 2), NO_LIMIT, () -> {
            producer.sendOneway(message(body));
            return 0;
        });
        Thread.sleep(option("warmup-ms", 5000));
        long before = stored(meter);
        long start = System.nanoTime();
        event("start");
        Thread.sleep(option("window-ms", 8000));
        long after = stored(meter);
        long nanos = System.nanoTime() - start;
        event("end");
        running = false;
        result("oneway", after - before, nanos, new long[0], "");
    }

    /** Both phases: a half message, and its commit, which nobody answers. */
    private void transaction() throws Exception {
        TransactionMQProducer producer = new TransactionMQProducer("bench-transactions");
        producer.setNamesrvAddr(namesrv);
        producer.setDefaultTopicQueueNums(QUEUES);
        producer.setTransactionListener(new TransactionListener() {
            @Override
            public LocalTransactionState executeLocalTransaction(Message message, Object argument) {
                return LocalTransactionState.COMMIT_MESSAGE;
            }

            @Override
            public LocalTransactionState checkLocalTransaction(MessageExt message) {
                return LocalTransactionState.COMMIT_MESSAGE;
            }
        });
        producer.start();
        byte[] body = body(option("bytes", 1024));
        measureSends("transaction", option("threads", 1), NO_LIMIT, () -> {
            SendResult result = producer.sendMessageInTransaction(message(body), null);
            return result.getSendStatus() == SendStatus.SEND_OK ? 1 : 0;
        });
    }

    /** Messages for a little later, of 5.x: what a consumer gets of them is counted. */
    private void timer() throws Exception {
        DefaultMQProducer producer = producer();
        makeTopic(producer);
        LongAdder taken = new LongAdder();
        DefaultMQPushConsumer consumer = consumer((messages, context) -> {
            taken.add(messages.size());
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.setConsumeMessageBatchMaxSize(32);
        consumer.start();
        byte[] body = body(option("bytes", 1024));
        String delay = Integer.toString(option("delay-ms", 2000));
        runThreads(option("threads", 16), NO_LIMIT, () -> {
            Message message = message(body);
            MessageAccessor.putProperty(message, "TIMER_DELAY_MS", delay);
            return producer.send(message).getSendStatus() == SendStatus.SEND_OK ? 1 : 0;
        });
        Thread.sleep(option("warmup-ms", 5000) + option("delay-ms", 2000));
        long before = taken.sum();
        long start = System.nanoTime();
        event("start");
        Thread.sleep(option("window-ms", 8000));
        long after = taken.sum();
        long nanos = System.nanoTime() - start;
        event("end");
        running = false;
        result("timer", after - before, nanos, new long[0], "");
    }

    private long stored(DefaultMQProducer producer) throws Exception {
        long total = 0;
        for (MessageQueue queue : producer.fetchPublishMessageQueues(topic)) {
            total += producer.maxOffset(queue);
        }
        return total;
    }

    /**
     * Fills the topic with small batched messages, then counts what one push consumer takes. With
     * stored=N nothing is sent: the topic has so many messages already.
     */
    private void drain() throws Exception {
        long backlog = option("messages", 1_000_000);
        long stored = option("stored", 0);
        double fillSeconds = 1;
        if (stored == 0) {
            DefaultMQProducer producer = producer();
            long fillStart = System.nanoTime();
            runThreads(4, backlog, batchStep(producer)).await();
            fillSeconds = (System.nanoTime() - fillStart) / 1e9;
            producer.shutdown();
        }
        long total = stored == 0 ? sent.sum() : stored;
        long skipped = total / 5; // the first fifth warms both sides up
        AtomicLong taken = new AtomicLong();
        CountDownLatch warm = new CountDownLatch(1);
        CountDownLatch done = new CountDownLatch(1);
        DefaultMQPushConsumer consumer = consumer((messages, context) -> {
            long after = taken.addAndGet(messages.size());
            if (after >= skipped) {
                warm.countDown();
            }
            if (after >= total) {
                done.countDown();
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.setConsumeMessageBatchMaxSize(option("consume-batch", 32));
        consumer.start();
        warm.await(60, TimeUnit.SECONDS);
        long first = taken.get();
        long start = System.nanoTime();
        event("start");
        boolean whole = done.await(120, TimeUnit.SECONDS);
        long nanos = System.nanoTime() - start;
        event("end");
        if (!whole) {
            failed(new IllegalStateException("drained only " + taken.get() + " of " + total));
        }
        result("drain", taken.get() - first, nanos, new long[0],
            String.format(Locale.ROOT, ",\"fill_rate\":%.1f", total / fillSeconds));
    }

    /** Counts what one lite pull consumer takes by polls; the topic has stored=N messages already. */
    private void lite() throws Exception {
        long total = option("stored", 0);
        DefaultLitePullConsumer consumer = new DefaultLitePullConsumer("bench-lite-" + topic);
        consumer.setNamesrvAddr(namesrv);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setPullBatchSize(32);
        consumer.subscribe(topic, "*");
        consumer.start();
        long taken = 0;
        long first = 0;
        long start = 0;
        long giveUp = System.nanoTime() + TimeUnit.SECONDS.toNanos(180);
        while (taken < total && System.nanoTime() < giveUp) {
            taken += consumer.poll().size();
            if (first == 0 && taken >= total / 10) { // the first tenth warms both sides up
                first = taken;
                start = System.nanoTime();
                event("start");
            }
        }
        long nanos = System.nanoTime() - start;
        event("end");
        if (taken < total) {
            failed(new IllegalStateException("polled only " + taken + " of " + total));
        }
        result("lite", taken - first, nanos, new long[0], "");
    }

    /** Sends at a low, even rate and times each message from before send() to the listener. */
    private void latency() throws Exception {
        int rate = option("rate", 100);
        int warmUp = rate * option("warmup-ms", 5000) / 1000;
        int count = warmUp + rate * option("window-ms", 8000) / 1000;
        long[] sentAt = new long[count];
        long[] latency = new long[count];
        CountDownLatch arrived = new CountDownLatch(count);
        DefaultMQProducer producer = producer();
        makeTopic(producer);
        DefaultMQPushConsumer consumer = consumer((messages, context) -> {
            long now = System.nanoTime();
            messages.forEach(message -> {
                String key = message.getUserProperty("n");
                if (key != null) {
                    int n = Integer.parseInt(key);
                    latency[n] = now - sentAt[n];
                    arrived.countDown();
                }
            });
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        Thread.sleep(2000); // assignment of the queues settles
        byte[] body = body(option("bytes", 1024));
        long origin = System.nanoTime();
        for (int n = 0; n < count; n++) {
            sleepUntil(origin + n * 1_000_000_000L / rate);
            if (n == warmUp) {
                event("start");
            }
            Message message = new Message(topic, body);
            message.putUserProperty("n", Integer.toString(n));
            sentAt[n] = System.nanoTime();
            try {
                producer.send(message);
            } catch (MQBrokerException error) { // busy: this one is counted as failed, not timed
                failed(error);
                arrived.countDown();
            }
        }
        boolean whole = arrived.await(10, TimeUnit.SECONDS);
        long nanos = System.nanoTime() - origin - warmUp * 1_000_000_000L / rate;
        event("end");
        if (!whole) {
            failed(new IllegalStateException(arrived.getCount() + " messages never arrived"));
        }
        long[] timed = Arrays.stream(latency, warmUp, count).filter(value -> value > 0).toArray();
        result("latency", count - warmUp, nanos, timed, "");
    }

    /** One message makes the topic; a broker still busy with an earlier load is asked again. */
    private void makeTopic(DefaultMQProducer producer) throws Exception {
        Message first = new Message(topic, "first".getBytes(StandardCharsets.UTF_8));
        for (int attempt = 1; ; attempt++) {
            try {
                producer.send(first);
                return;
            } catch (MQBrokerException | MQClientException | IllegalStateException error) {
                // The last two: a name server that knows no broker yet, or none in time.
                if (attempt == 50) {
                    throw error;
                }
                Thread.sleep(100);
            }
        }
    }

    private void measureSends(String mode, int threads, long limit, Step step) throws Exception {
        runThreads(threads, limit, step);
        Thread.sleep(option("warmup-ms", 5000));
        long before = sent.sum();
        long start = System.nanoTime();
        event("start");
        Thread.sleep(option("window-ms", 8000));
        long after = sent.sum();
        long nanos = System.nanoTime() - start;
        event("end");
        running = false;
        result(mode, after - before, nanos, new long[0], ",\"threads\":" + threads);
    }

    /** Starts the threads; the latch opens when all have ended: told to, or at the limit. */
    private CountDownLatch runThreads(int threads, long limit, Step step) {
        CountDownLatch ended = new CountDownLatch(threads);
        for (int i = 0; i < threads; i++) {
            Thread thread = new Thread(() -> {
                while (running && sent.sum() < limit) {
                    try {
                        sent.add(step.run());
                    } catch (Exception error) {
                        failed(error);
                    }
                }
                ended.countDown();
            });
            thread.setDaemon(true);
            thread.start();
        }
        return ended;
    }

    /** The account that signs, if the properties bench.accessKey and bench.secretKey name one. */
    private static RPCHook account() {
        String key = System.getProperty("bench.accessKey");
        return key == null ? null
            : new AclClientRPCHook(new SessionCredentials(key, System.getProperty("bench.secretKey")));
    }

    private DefaultMQProducer producer() throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer("bench-producer", account());
        producer.setNamesrvAddr(namesrv);
        producer.setDefaultTopicQueueNums(QUEUES);
        producer.start();
        return producer;
    }

    private DefaultMQPushConsumer consumer(MessageListenerConcurrently listener) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(
            "bench-consumer-" + topic, account(), new AllocateMessageQueueAveragely());
        consumer.setNamesrvAddr(namesrv);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, "*");
        if (option("pop", 0) == 1) { // of 5.x: this program is compiled with 4.9.7 as well
            consumer.getClass().getMethod("setClientRebalance", boolean.class).invoke(consumer, false);
        }
        consumer.registerMessageListener(listener);
        return consumer;
    }

    /** A message as applications send them: with properties of their own, when that is asked for. */
    private Message message(byte[] body) {
        Message message = new Message(topic, body);
        int properties = option("properties", 0);
        for (int n = 0; n < properties; n++) {
            message.putUserProperty(PROPERTIES[n][0], PROPERTIES[n][1]);
        }
        return message;
    }

    private int option(String name, int otherwise) {
        for (String option : options) {
            if (option.startsWith(name + "=")) {
                return Integer.parseInt(option.substring(name.length() + 1));
            }
        }
        return otherwise;
    }

    private void failed(Throwable error) {
        failed.increment();
        firstError.compareAndSet(null, error.toString());
    }

    private static byte[] body(int bytes) {
        byte[] body = new byte[bytes];
        Arrays.fill(body, (byte) 'x');
        return body;
    }

    private static void sleepUntil(long nanoTime) throws InterruptedException {
        long left = nanoTime - System.nanoTime();
        if (left > 0) {
            TimeUnit.NANOSECONDS.sleep(left);
        }
    }

    private static void event(String name) {
        System.out.println("{\"event\":\"" + name + "\"}");
        System.out.flush();
    }

    private void result(String mode, long messages, long nanos, long[] latencies, String more) {
        Arrays.sort(latencies);
        String error = firstError.get();
        System.out.println(String.format(Locale.ROOT,
            "{\"event\":\"result\",\"mode\":\"%s\",\"messages\":%d,\"seconds\":%.4f,\"rate\":%.1f,"
                + "\"failed\":%d,\"error\":%s,\"p50_ms\":%s,\"p99_ms\":%s%s}",
            mode, messages, nanos / 1e9, messages * 1e9 / nanos, failed.sum(),
            error == null ? "null" : "\"" + error.replaceAll("[\"\\\\\\p{Cntrl}]", " ") + "\"",
            percentile(latencies, 50), percentile(latencies, 99), more));
        System.out.flush();
    }

    private static String percentile(long[] sorted, int percent) {
        if (sorted.length == 0) {
            return "null";
        }
        int index = Math.min(sorted.length - 1, sorted.length * percent / 100);
        return String.format(Locale.ROOT, "%.3f", sorted[index] / 1e6);
    }
}
