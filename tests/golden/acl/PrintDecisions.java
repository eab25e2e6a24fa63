import com.alibaba.fastjson.JSON;
import java.io.File;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.*;
import org.apache.rocketmq.acl.AccessResource;
import org.apache.rocketmq.acl.common.*;
import org.apache.rocketmq.acl.plain.*;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;

/** Prints what the original makes of patterns of addresses, and of requests under ACL 1. */
public class PrintDecisions {
    static final String[] PATTERNS = {
        "", " ", "*", "*.*.*.*", "*:*:*:*:*:*:*:*", "10.1.2.3", "::1", "1:2:3:4:5:6:7:8", "1::8", "FE80::A",
        "10.1.2.*", "10.1.*.*", "10.1.*.7", "10.*.*.*", "10.*.2.3", "10.1.2.3-9", "10.1.2.0-9", "10.1.2-3.*",
        "10.1-3.*.*", "10.1-3.2.3", "10.1.2.200-256", "10.1.2.9-3", "10.1.2.-3", "10.1.2.3-", "10.1.300.*",
        "300.1.*.*", "10.300.2.*", "10.1.2", "10.1.*", "10.1.2.3.4", "10.1.x.*", " 10.1. 2.3-9 ", "10.1.2.3 ",
        "10.1.2.{1,2,9}", "10.1.2.{1}", "10.1.2.{}", "10.1.{1,2}", "10.1.2.3{1,2}", "10.1.{2,3}.4", "10.1.2.{1, 2}",
        "10.1.2.{1,256}", "1:2:3:4:5:6:7:{8,9}", "::{1,2}", "1:2{3,4}", "5::7:6:{1,A}",
        "10.1.2.3,::1", "10.1.2.3,10.1.2.4", "10.1.2.3, 10.1.2.4", "10.1.2.3,x", ",", "10.1.2.3,",
        "5::7:6:1-200:*", "5::7:6:1-200", "5::7:6:*", "5::7:6:0-FFFF", "1::*", "1:2:*", "1:2:3:4:5:6:7:*",
        "1:2:3:4:5:6:1-3:*", "1:2:3:4:5:6:7:1-a", "5::7:*:6", "5::1-2:7:6", "5::7:6:200-1", "5::7:6:1-10000",
        "x::7:6:*", "5:x::7:6:*", "a", "10.0.0.0/8", "1.2.3.04", "localhost", "10.1.2.0-0.*", "1:2:0-0:*",
    };
    static final String[] ADDRESSES = {
        "10.1.2.3", "10.1.2.1", "10.1.2.9", "10.1.2.10", "10.1.3.3", "10.1.3.7", "10.2.2.3", "10.3.9.9", "10.4.2.3",
        "11.1.2.3", "127.0.0.1", "10.1.2.4", "10.1.2.0", "10.11.2.3", "10.1.20.3", "300.1.2.3",
        "::1", "0:0:0:0:0:0:0:1", "::2", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:9", "1::8", "fe80::a", "1:2::9",
        "5::7:6:1:1", "5::7:6:200:0", "5::7:6:201:0", "5:0:0:0:0:7:6:1", "5::7:6:200", "5::7:6:201", "5::7:6:0",
        "5::7:6:a", "1:0:5::1", "1:1::", "1:2:3:4:5:6:2:9", "1:2:3:4:5:6:4:9", "1:2:3:4:5:6:7:b",
    };
    static final String YML =
        "globalWhiteRemoteAddresses:\n- 10.9.9.*\n"
        + "accounts:\n"
        + "- accessKey: admin-all\n  secretKey: 12345678\n  admin: true\n"
        + "- accessKey: admin-some\n  secretKey: secret-2\n  admin: true\n  topicPerms:\n  - orders=PUB\n"
        + "- accessKey: whited-key\n  secretKey: secret-3\n  whiteRemoteAddress: 10.8.8.8\n"
        + "- accessKey: nothing-key\n  secretKey: secret-4\n"
        + "- accessKey: writer-key\n  secretKey: secret-5\n  defaultTopicPerm: PUB\n  defaultGroupPerm: DENY\n"
        + "  topicPerms:\n  - denied=DENY\n  - read=SUB\n  - both=SUB|PUB\n  - odd=WRITE\n"
        + "- accessKey: reader-key\n  secretKey: secret-6\n  defaultTopicPerm: ' SUB '\n  defaultGroupPerm: SUB\n"
        + "  groupPerms:\n  - shut=DENY\n  - ' open = PUB|SUB'\n  topicPerms:\n  - '%RETRY%viatopic=DENY'\n";
    static final String[][] KEYS = {
        {"admin-all", "12345678"}, {"admin-some", "secret-2"}, {"whited-key", "secret-3"}, {"nothing-key", "secret-4"},
        {"writer-key", "secret-5"}, {"reader-key", "secret-6"}, {"reader-key", "wrong-secret"}, {"unknown-key", "secret-7"},
    };
    static final List<Object[]> REQUESTS = new ArrayList<>();

    static void add(int code, String body, String... fields) {
        REQUESTS.add(new Object[] {code, body, fields});
    }

    static Object strategy(String pattern) {
        try {
            return new RemoteAddressStrategyFactory().getRemoteAddressStrategy(pattern);
        } catch (AclException e) {
            return e.getMessage();
        } catch (RuntimeException e) {
            return e.getClass().getName();
        }
    }

    static void print(Object... pairs) {
        Map<String, Object> line = new LinkedHashMap<>();
        for (int i = 0; i < pairs.length; i += 2) {
            line.put((String) pairs[i], pairs[i + 1]);
        }
        System.out.println(JSON.toJSONString(line));
    }

    public static void main(String[] args) throws Exception {
        for (String pattern : PATTERNS) {
            Object strategy = strategy(pattern);
            if (strategy instanceof String) {
                print("pattern", pattern, "error", strategy);
                continue;
            }
            List<String> matched = new ArrayList<>();
            String failed = null;
            for (String address : ADDRESSES) {
                PlainAccessResource resource = new PlainAccessResource();
                resource.setWhiteRemoteAddress(address);
                try {
                    if (((RemoteAddressStrategy) strategy).match(resource)) {
                        matched.add(address);
                    }
                } catch (RuntimeException e) {
                    failed = e.getClass().getName();
                }
            }
            if (failed == null) {
                print("pattern", pattern, "matched", matched);
            } else {
                print("pattern", pattern, "failed", failed);
            }
        }
        print("addresses", ADDRESSES);
        File home = Files.createTempDirectory("acl").toFile();
        new File(home, "conf").mkdirs();
        Files.write(Paths.get(home.getPath(), "conf/plain_acl.yml"), YML.getBytes(StandardCharsets.UTF_8));
        System.setProperty("rocketmq.home.dir", home.getPath());
        print("yml", YML);
        PlainAccessValidator validator = new PlainAccessValidator();
        String[] topics = {"orders", "denied", "read", "both", "odd", "RMQ_SYS_TRACE_TOPIC", "%RETRY%open", "%RETRY%shut"};
        for (String topic : topics) {
            add(10, "x", "topic", topic, "group", "open");
            add(310, "x", "b", topic, "a", "open");
            add(12, null, "topic", topic, "key", "k");
            add(11, null, "topic", topic, "consumerGroup", "open");
            add(15, null, "topic", topic, "consumerGroup", "open", "queueId", "0", "commitOffset", "1");
            add(34, "{\"clientID\":\"c\",\"consumerDataSet\":[{\"groupName\":\"open\",\"subscriptionDataSet\":[{\"topic\":\""
                + topic + "\"}]}],\"producerDataSet\":[]}");
        }
        for (String group : new String[] {"open", "shut", "other", "viatopic"}) {
            add(36, null, "group", group, "offset", "1", "delayLevel", "0");
            add(35, null, "clientID", "c", "consumerGroup", group);
            add(38, null, "consumerGroup", group);
            add(14, null, "consumerGroup", group, "topic", "orders", "queueId", "0");
        }
        add(35, null, "clientID", "c", "producerGroup", "p");
        add(34, "{\"clientID\":\"c\",\"consumerDataSet\":[],\"producerDataSet\":[{\"groupName\":\"p\"}]}");
        for (int code : new int[] {17, 200, 207, 215, 25, 26, 28, 30, 105, 203, 52, 54, 50, 51, 53, 306, 77777}) {
            add(code, null, "topic", "orders", "groupName", "open", "queueId", "0", "consumerGroup", "open");
        }
        for (String host : new String[] {"10.7.7.7", "10.8.8.8", "10.9.9.1"}) {
            for (Object[] request : REQUESTS) {
                for (String[] key : KEYS) {
                    if (host.equals("10.7.7.7") || (int) request[0] == 310 || (int) request[0] == 17) {
                        decide(validator, host, key, request);
                    }
                }
            }
        }
        RemotingCommand command = RemotingCommand.createRequestCommand(310, null);
        PlainAccessResource parsed = (PlainAccessResource) validator.parse(command, "10.7.7.7:1");
        print("code", 310, "host", "10.7.7.7", "refused", refused(validator, parsed));
        System.exit(0);
    }

    static String refused(PlainAccessValidator validator, AccessResource resource) {
        try {
            validator.validate(resource);
            return null;
        } catch (AclException e) {
            return e.getMessage();
        }
    }

    static void decide(PlainAccessValidator validator, String host, String[] key, Object[] request) throws Exception {
        RemotingCommand command = RemotingCommand.createRequestCommand((int) request[0], null);
        String[] fields = (String[]) request[2];
        HashMap<String, String> ext = new HashMap<>();
        for (int i = 0; i < fields.length; i += 2) {
            ext.put(fields[i], fields[i + 1]);
        }
        ext.put("AccessKey", key[0]);
        command.setExtFields(ext);
        String body = (String) request[1];
        if (body != null) {
            command.setBody(body.getBytes(StandardCharsets.UTF_8));
        }
        byte[] content = AclUtils.combineRequestContent(command, new TreeMap<>(ext));
        ext.put("Signature", AclUtils.calSignature(content, key[1]));
        AccessResource parsed = validator.parse(command, host + ":4711");
        print("code", request[0], "host", host, "fields", new TreeMap<>(ext), "body", body, "refused", refused(validator, parsed));
    }
}
