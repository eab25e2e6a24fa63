// SPDX-License-Identifier: Apache-2.0

import com.alibaba.fastjson.JSONObject;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.acl.common.AclClientRPCHook;
import org.apache.rocketmq.acl.common.SessionCredentials;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.remoting.RPCHook;

/** The running clients of one kind by their name; every kind is configured alike. */
final class Clients<C extends ClientConfig> {
    private final Map<String, C> clients = new ConcurrentHashMap<>();

    /** The client a command names. */
    C named(JSONObject arguments) {
        String name = arguments.getString("name");
        C client = clients.get(name);
        if (client == null) {
            throw new IllegalArgumentException("no client of this kind is named " + name);
        }
        return client;
    }

    void put(JSONObject arguments, C client) {
        clients.put(arguments.getString("name"), client);
    }

    /**
     * Takes namesrv, tls, heartbeat_ms, vip, namespace_v2 (5.x); the name makes each client an instance
     * of its own. Without tls, the system property tls.enable counts.
     */
    static void configure(ClientConfig client, JSONObject arguments) {
        client.setNamesrvAddr(arguments.getString("namesrv"));
        client.setInstanceName(arguments.getString("name"));
        client.setClientIP("127.0.0.1");
        client.setVipChannelEnabled(arguments.getBooleanValue("vip"));
        if (arguments.containsKey("tls")) {
            client.setUseTLS(arguments.getBooleanValue("tls"));
        }
        if (arguments.containsKey("heartbeat_ms")) {
            client.setHeartbeatBrokerInterval(arguments.getIntValue("heartbeat_ms"));
        }
        if (arguments.containsKey("namespace_v2")) {
            setNamespaceV2(client, arguments.getString("namespace_v2"));
        }
    }

    /** What signs the requests of a client: access_key and secret_key; null without them. */
    static RPCHook hook(JSONObject arguments) {
        String key = arguments.getString("access_key");
        return key == null
                ? null
                : new AclClientRPCHook(new SessionCredentials(key, arguments.getString("secret_key")));
    }

    private static void setNamespaceV2(ClientConfig client, String namespace) {
        try {
            ClientConfig.class.getMethod("setNamespaceV2", String.class).invoke(client, namespace);
        } catch (ReflectiveOperationException error) {
            throw new IllegalArgumentException("not in this release: namespaceV2", error);
        }
    }
}
