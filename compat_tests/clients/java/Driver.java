// SPDX-License-Identifier: Apache-2.0

import com.alibaba.fastjson.JSONObject;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.common.MQVersion;

/**
 * One JVM with any number of official RocketMQ clients in it, driven by the tests.
 *
 * <p>It connects to the address in its first argument, reads one JSON command a line and writes one
 * JSON event a line: an answer to a command carries the command's id, anything else a consumer
 * reports carries its name. It ends when the connection does, so that no JVM outlives its test.
 */
public final class Driver {
    /** What a command does; its result goes into the answer. */
    interface Operation {
        Object run(JSONObject arguments) throws Exception;
    }

    /** A client that can be told to stop. */
    interface Stoppable {
        void shutdown();
    }

    private final Map<String, Operation> operations = new ConcurrentHashMap<>();
    private final Map<String, Stoppable> running = new ConcurrentHashMap<>();
    private final ExecutorService workers =
            Executors.newCachedThreadPool(
                    task -> {
                        Thread thread = new Thread(task, "command");
                        thread.setDaemon(true);
                        return thread;
                    });

    public static void main(String[] arguments) throws Exception {
        Driver driver = new Driver();
        Wire wire = new Wire(arguments[0]);
        driver.serve(wire);
        // Not exit(): shutdown hooks of consumers that were left running would talk to brokers.
        Runtime.getRuntime().halt(0);
    }

    void operation(String name, Operation operation) {
        operations.put(name, operation);
    }

    void started(String client, Stoppable stoppable) {
        running.put(client, stoppable);
    }

    private void serve(Wire wire) throws Exception {
        new Producers(this).register();
        new PushConsumers(this, wire).register();
        new PullConsumers(this).register();
        new LitePullConsumers(this).register();
        new Admins(this).register();
        new Transactions(this, wire).register();
        new Requests(this, wire).register();
        new Commands(this).register();
        operation("stop", this::stop);
        JSONObject hello = new JSONObject();
        hello.put("event", "hello");
        hello.put("version", MQVersion.getVersionDesc(MQVersion.CURRENT_VERSION));
        hello.put("pid", ProcessHandle.current().pid());
        wire.write(hello);
        for (JSONObject command = wire.read(); command != null; command = wire.read()) {
            JSONObject accepted = command;
            workers.submit(() -> wire.write(answer(accepted)));
        }
    }

    private Object stop(JSONObject arguments) {
        Stoppable client = running.remove(arguments.getString("name"));
        if (client != null) {
            client.shutdown();
        }
        return client != null;
    }

    private JSONObject answer(JSONObject command) {
        JSONObject answer = new JSONObject();
        answer.put("id", command.get("id"));
        try {
            Operation operation = operations.get(command.getString("op"));
            if (operation == null) {
                throw new IllegalArgumentException("no such operation: " + command.get("op"));
            }
            answer.put("result", run(operation, command));
        } catch (Throwable error) {
            answer.put("error", describe(error));
        }
        return answer;
    }

    /**
     * A network interface that goes while a client looks for the address of this machine, such as that of
     * another test's container, leaves the client without one, and its constructor fails. Nothing has
     * happened by then, so the client is made again.
     */
    private static Object run(Operation operation, JSONObject command) throws Exception {
        try {
            return operation.run(command);
        } catch (NullPointerException error) {
            StackTraceElement[] trace = error.getStackTrace();
            if (trace.length == 0 || !trace[0].getClassName().endsWith(".NetworkUtil")) {
                throw error;
            }
            Thread.sleep(200);
            return operation.run(command);
        }
    }

    /** The exception's class, RocketMQ response code (null when it has none), message and cause. */
    static JSONObject describe(Throwable error) {
        JSONObject description = new JSONObject();
        description.put("class", error.getClass().getName());
        description.put("code", code(error));
        description.put("message", error.getMessage());
        StackTraceElement[] trace = error.getStackTrace();
        description.put("at", trace.length > 0 ? trace[0].toString() : null);
        if (error.getCause() != null && error.getCause() != error) {
            description.put("cause", describe(error.getCause()));
        }
        return description;
    }

    private static Integer code(Throwable error) {
        if (error instanceof MQBrokerException) {
            return ((MQBrokerException) error).getResponseCode();
        }
        if (error instanceof MQClientException) {
            return ((MQClientException) error).getResponseCode();
        }
        return null;
    }
}
