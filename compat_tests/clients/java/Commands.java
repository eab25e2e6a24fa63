// SPDX-License-Identifier: Apache-2.0

import com.alibaba.fastjson.JSONArray;
import com.alibaba.fastjson.JSONObject;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.nio.charset.StandardCharsets;
import java.security.Permission;
import java.util.List;
import java.util.TreeSet;
import org.apache.rocketmq.tools.command.MQAdminStartup;
import org.apache.rocketmq.tools.command.SubCommand;

/** The commands of mqadmin, one at a time, with what they print. */
final class Commands {
    private final Driver driver;

    Commands(Driver driver) {
        this.driver = driver;
    }

    void register() {
        driver.operation("mqadmin", this::run);
        driver.operation("mqadmin_names", arguments -> names());
        System.setSecurityManager(new NoExit());
    }

    /** Commands end the process when a required option is missing. */
    private static final class NoExit extends SecurityManager {
        @Override
        public void checkExit(int status) {
            throw new SecurityException("exit " + status);
        }

        @Override
        public void checkPermission(Permission permission) {
            // All else is allowed.
        }
    }

    /** Fields: line (the words after mqadmin), seconds it may take. Output and errors as lines. */
    private synchronized Object run(JSONObject arguments) throws Exception {
        String[] line = arguments.getJSONArray("line").toJavaList(String.class).toArray(new String[0]);
        PrintStream out = System.out;
        PrintStream err = System.err;
        ByteArrayOutputStream said = new ByteArrayOutputStream();
        ByteArrayOutputStream failed = new ByteArrayOutputStream();
        System.setOut(new PrintStream(said, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(failed, true, StandardCharsets.UTF_8));
        Thread thread = new Thread(() -> MQAdminStartup.main0(line, null), "mqadmin");
        thread.setDaemon(true);
        try {
            thread.start();
            thread.join(arguments.getLongValue("seconds") * 1000);
        } finally {
            System.setOut(out);
            System.setErr(err);
        }
        JSONObject result = new JSONObject();
        result.put("ended", !thread.isAlive());
        result.put("out", said.toString(StandardCharsets.UTF_8));
        result.put("err", failed.toString(StandardCharsets.UTF_8));
        thread.interrupt();
        return result;
    }

    /** What commands there are: the list has another name in each release. */
    private static JSONArray names() throws Exception {
        MQAdminStartup.initCommand();
        TreeSet<String> names = new TreeSet<>();
        for (Field field : MQAdminStartup.class.getDeclaredFields()) {
            if (Modifier.isStatic(field.getModifiers()) && List.class.isAssignableFrom(field.getType())) {
                field.setAccessible(true);
                for (Object each : (List<?>) field.get(null)) {
                    names.add(((SubCommand) each).commandName());
                }
            }
        }
        JSONArray array = new JSONArray();
        array.addAll(names);
        return array;
    }
}
