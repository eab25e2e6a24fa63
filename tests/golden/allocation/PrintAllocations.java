// SPDX-License-Identifier: Apache-2.0
// Prints what the original's strategies give to each member of random groups; see README.md.

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.stream.Collectors;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMachineRoomNearby;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByMachineRoom;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueConsistentHash;
import org.apache.rocketmq.common.message.MessageQueue;

public class PrintAllocations {
    static final String[] ROOMS = {"east", "west", "north"};

    static String room(String name) {
        return name.substring(0, name.indexOf('@'));
    }

    public static void main(String[] arguments) {
        AllocateMessageQueueByMachineRoom byRoom = new AllocateMessageQueueByMachineRoom();
        byRoom.setConsumeridcs(new HashSet<>(Arrays.asList("east", "north")));
        List<AllocateMessageQueueStrategy> strategies = Arrays.asList(
            new AllocateMessageQueueAveragely(),
            new AllocateMessageQueueAveragelyByCircle(),
            byRoom,
            new AllocateMachineRoomNearby(new AllocateMessageQueueAveragely(),
                new AllocateMachineRoomNearby.MachineRoomResolver() {
                    public String brokerDeployIn(MessageQueue queue) {
                        return room(queue.getBrokerName());
                    }

                    public String consumerDeployIn(String clientId) {
                        return room(clientId);
                    }
                }),
            new AllocateMessageQueueConsistentHash());
        Random random = new Random(arguments.length > 0 ? Long.parseLong(arguments[0]) : 4711);
        int groups = arguments.length > 1 ? Integer.parseInt(arguments[1]) : 16;
        for (int group = 0; group < groups; group++) {
            List<MessageQueue> queues = new ArrayList<>();
            int brokers = 1 + random.nextInt(4);
            for (int broker = 0; broker < brokers; broker++) {
                String name = ROOMS[random.nextInt(3)] + "@broker-" + broker;
                int count = random.nextInt(9);
                for (int queue = 0; queue < count; queue++) {
                    queues.add(new MessageQueue("Topic", name, queue));
                }
            }
            if (queues.isEmpty()) {
                continue;
            }
            List<String> members = new ArrayList<>();
            int count = 1 + random.nextInt(12);
            for (int member = 0; member < count; member++) {
                members.add(ROOMS[random.nextInt(3)] + "@10.0.0." + member);
            }
            Collections.sort(queues);
            Collections.sort(members);
            for (AllocateMessageQueueStrategy strategy : strategies) {
                for (String member : members) {
                    List<MessageQueue> share = strategy.allocate("group", member, queues, members);
                    System.out.println(strategy.getName() + "\t" + text(queues) + "\t"
                        + String.join(",", members) + "\t" + member + "\t" + text(share));
                }
            }
        }
    }

    static String text(List<MessageQueue> queues) {
        return queues.stream().map(queue -> queue.getBrokerName() + ":" + queue.getQueueId())
            .collect(Collectors.joining(","));
    }
}
