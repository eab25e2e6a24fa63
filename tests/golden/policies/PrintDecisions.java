// SPDX-License-Identifier: Apache-2.0
// Writes which of two policy entries decides, for all ordered pairs of ten entries, as the jar
// rocketmq-auth of 5.4.0 finds it: first entry, second entry, the one that decides; a line each.
// Run with the jars of a server: java -cp 'LIB/*' PrintDecisions.java > decisions.txt

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import org.apache.rocketmq.auth.authentication.model.User;
import org.apache.rocketmq.auth.authorization.chain.AclAuthorizationHandler;
import org.apache.rocketmq.auth.authorization.context.DefaultAuthorizationContext;
import org.apache.rocketmq.auth.authorization.enums.Decision;
import org.apache.rocketmq.auth.authorization.enums.PolicyType;
import org.apache.rocketmq.auth.authorization.model.Acl;
import org.apache.rocketmq.auth.authorization.model.Policy;
import org.apache.rocketmq.auth.authorization.model.PolicyEntry;
import org.apache.rocketmq.auth.authorization.model.Resource;
import org.apache.rocketmq.auth.config.AuthConfig;
import org.apache.rocketmq.common.action.Action;

public class PrintDecisions {
    public static void main(String[] args) throws Exception {
        AclAuthorizationHandler handler = new AclAuthorizationHandler(new AuthConfig());
        Method match = AclAuthorizationHandler.class.getDeclaredMethod(
            "matchPolicyEntries", DefaultAuthorizationContext.class, Acl.class);
        match.setAccessible(true);
        User user = User.of("u");
        DefaultAuthorizationContext asked = DefaultAuthorizationContext.of(
            user, Resource.ofTopic("abc"), Action.PUB, "10.1.2.3");
        List<PolicyEntry> entries = new ArrayList<>();
        for (String key : new String[] {"*", "Topic:*", "Topic:a*", "Topic:ab*", "Topic:abc"}) {
            for (Decision decision : new Decision[] {Decision.ALLOW, Decision.DENY}) {
                entries.add(PolicyEntry.of(Resource.of(key), List.of(Action.PUB), null, decision));
            }
        }
        for (PolicyEntry first : entries) {
            for (PolicyEntry second : entries) {
                if (first != second) {
                    List<PolicyEntry> both = new ArrayList<>(List.of(first, second));
                    Object found = match.invoke(handler, asked, Acl.of(user, Policy.of(PolicyType.CUSTOM, both)));
                    System.out.println(text(first) + " " + text(second) + " "
                        + text((PolicyEntry) found));
                }
            }
        }
    }

    private static String text(PolicyEntry entry) {
        return entry.toResourceStr() + "=" + entry.getDecision().getName();
    }
}
