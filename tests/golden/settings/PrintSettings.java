// SPDX-License-Identifier: Apache-2.0

import java.util.Properties;
import java.util.TreeSet;
import org.apache.rocketmq.common.MixAll;

/**
 * Prints what the original's servers answer as their configuration when nothing is configured.
 *
 * <p>RELEASE.txt beside this file is its output for the jars of rocketmq-broker of that release:
 *
 * <pre>
 * javac -cp "JARS/*" -d . PrintSettings.java
 * java -XX:ActiveProcessorCount=2 -Duser.home=/home/me -cp ".:JARS/*" PrintSettings | grep '^[A-Z]'
 * </pre>
 */
public final class PrintSettings {
    private static final String[] CLASSES = {
        "common.BrokerConfig",
        "remoting.netty.NettyServerConfig",
        "remoting.netty.NettyClientConfig",
        "store.config.MessageStoreConfig",
        "auth.config.AuthConfig",
        "common.namesrv.NamesrvConfig",
    };

    public static void main(String[] arguments) throws Exception {
        for (String name : CLASSES) {
            Object settings;
            try {
                Class<?> found = Class.forName("org.apache.rocketmq." + name);
                settings = found.getDeclaredConstructor().newInstance();
            } catch (ClassNotFoundException error) {
                continue; // 4.9.7 has no AuthConfig
            }
            Properties properties = MixAll.object2Properties(settings);
            for (String key : new TreeSet<>(properties.stringPropertyNames())) {
                String value = properties.getProperty(key);
                System.out.println(name.replaceAll(".*\\.", "") + " " + key + "=" + value);
            }
        }
    }
}
